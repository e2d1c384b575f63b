"""The door of one trial: a file with single values becomes a spec."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.search_space import parse_space
from tests.builders import a_spec
from tests.space_building import MAIN, configurations, space_text
from trainables.errors import InputError
from trainables.spec_door import read_spec, spec_from_text, spec_to_yaml
from trainables.specs import CompileMode, MeasurementProtocol, Precision, TrainingConfig


def refusal(text: str) -> tuple[str, ...]:
    with pytest.raises(InputError) as caught:
        spec_from_text(text, source="x.yaml")
    return caught.value.messages


def test_a_file_of_single_values_is_a_spec(tmp_path: Path) -> None:
    path = tmp_path / "best.yaml"
    path.write_text(space_text(knobs={"precision": ["bf16"], "compile": True}, seed=3))
    spec = read_spec(str(path))
    assert spec.config == TrainingConfig(
        precision=Precision.BF16, batch_size=64, compile=CompileMode.DEFAULT, lr=1e-3, num_workers=0
    )
    assert (spec.model, spec.dataset, spec.seed, spec.protocol.epochs) == ("digits_cnn", "digits", 3, 2)


@pytest.mark.parametrize("knobs", [None, {"weight_decay": 0.5}])
def test_one_explicit_configuration_is_a_spec_too(knobs: dict[str, Any] | None) -> None:
    text = space_text(configs=[MAIN]).partition("knobs:")[0] + ("knobs: {weight_decay: 0.5}\n" if knobs else "")
    spec = spec_from_text(
        text + "configs:\n- {precision: fp32, batch_size: 8, compile: off, lr: 1, num_workers: 0}\n", source="x"
    )
    assert (spec.config.batch_size, spec.config.weight_decay) == (8, 0.5 if knobs else 0.01)


def test_a_configuration_written_twice_is_one() -> None:
    assert spec_from_text(space_text(configs=[MAIN]), source="x").config.batch_size == 64


def test_the_rule_for_the_learning_rate_holds_here_too() -> None:
    text = space_text(lr_rule="linear", lr_reference_batch_size=128)
    spec = spec_from_text(text, source="x")
    assert spec.config.lr == 0.0005
    assert parse_space(text, name="x").grid().configs == (spec.config,)


def test_code_and_data_of_ones_own_are_fingerprinted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "door_models.py").write_text("def build(): ...\n")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.png").write_bytes(b"123")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    text = space_text(model="door_models:build", dataset="image_folder", dataset_args={"root": "data"})
    before = spec_from_text(text, source="x")
    assert before.code_fingerprint
    assert before.data_fingerprint
    (tmp_path / "door_models.py").write_text("def build(): return 1\n")
    (tmp_path / "data" / "b.png").write_bytes(b"456")
    after = spec_from_text(text, source="x")
    assert after.code_fingerprint != before.code_fingerprint
    assert after.data_fingerprint != before.data_fingerprint


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            space_text(knobs={"lr": [1e-3, 3e-3]}),
            "x.yaml:8: knobs.lr: must be a single value, got a list of 2 values; leave one, or run all with "
            "python -m orchestrator.sweep",
        ),
        (
            space_text(knobs={"lr": {"uniform": [0.1, 1]}}),
            "x.yaml:8: knobs.lr: must be a single value, got a distribution; leave one, or run all with "
            "python -m orchestrator.sweep",
        ),
        (
            space_text(configs=[{"lr": 1}]),
            "x.yaml:10: configs: there are 2 configurations, and one is run here; leave one, or run all with "
            "python -m orchestrator.sweep",
        ),
        (
            space_text(constraints=["lr < 1"]),
            "x.yaml:10: constraints: choose among configurations, and one is run here; leave them out",
        ),
        (
            "model: digits_cnn\ndataset: digits\nepochs: 1\nknobs: {lr: 1}\n",
            "x.yaml:4: knobs: precision, batch_size, compile, num_workers missing; every trial has precision, "
            "batch_size, compile, lr, num_workers",
        ),
        (
            "model: digits_cnn\ndataset: digits\nepochs: 1\nconfigs: [{lr: 1}]\n",
            "x.yaml:4: configs[0]: precision, batch_size, compile, num_workers missing; a configuration gives them "
            "itself, or knobs gives a single value",
        ),
        (space_text(knobs={"lr": []}), "x.yaml:8: knobs.lr: must be a single value, got a list of 0 values; leave one"),
    ],
)
def test_more_or_less_than_one_configuration_is_refused(text: str, message: str) -> None:
    (found,) = refusal(text)
    assert found.startswith(message)


def test_every_fault_is_reported_at_once() -> None:
    text = space_text(model="digit_cnn", knobs={"lr": 0, "batch_size": True, "size": 1}, epochs=0, lr_rule="linear")
    assert [message.split(": ")[1] for message in refusal(text)] == [
        "model",
        "epochs",
        "knobs.batch_size",
        "knobs.lr",
        "knobs.size",
        "lr_rule",
    ]


def test_an_empty_file_is_refused() -> None:
    assert refusal("") == ("x.yaml: is empty",)


def test_a_spec_is_written_so_that_it_is_the_same_trial() -> None:
    spec = a_spec()
    again = spec_from_text(spec_to_yaml(spec), source="best.yaml")
    assert (again.config, again.model, again.dataset) == (spec.config, spec.model, spec.dataset)


def test_a_replicate_is_written_with_the_seed_that_it_trained_from() -> None:
    text = space_text(seed=3)
    space = parse_space(text, name="x")
    spec = space.spec(space.grid().configs[0], replicate=2)
    assert spec_from_text(spec_to_yaml(spec), source="best.yaml").training_seed == 5


@given(configurations, st.integers(0, 1000), st.sampled_from([{"epochs": 3}, {"epochs": None, "max_steps": 70}]))
def test_what_is_written_reads_back_as_the_same_trial_and_as_the_same_space(
    knobs: dict[str, Any], seed: int, length: dict[str, Any]
) -> None:
    text = space_text(knobs=knobs, seed=seed, **length)
    space = parse_space(text, name="x")
    spec = spec_from_text(text, source="x")
    assert space.spec(space.grid().configs[0]) == spec
    written = spec_to_yaml(spec)
    assert spec_from_text(written, source="best.yaml").trial_id == spec.trial_id
    assert parse_space(written, name="best.yaml").grid().configs == (spec.config,)
    assert isinstance(spec.protocol, MeasurementProtocol)
