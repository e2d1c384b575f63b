"""The training's own state: what a checkpoint calls its parameters."""

from pathlib import Path

from tests.trial_building import interrupted_hash, last_checkpoint, toy_spec, trained_hash


def test_a_part_that_a_user_compiled_has_plain_names_and_goes_on_from_them(tmp_path: Path) -> None:
    spec = toy_spec("partly_compiled", protocol={"epochs": 3})
    whole = trained_hash(spec, tmp_path / "whole")
    names = last_checkpoint(spec, tmp_path / "whole").model
    assert sorted(names) == ["first.bias", "first.weight", "second.bias", "second.weight"]
    assert interrupted_hash(spec, tmp_path / "cut", after=1) == whole
