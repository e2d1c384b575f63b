"""Checkpoints are whole or passed over, and hold nothing that the safe loader refuses."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from trainables.checkpoints import Checkpoint, Checkpoints
from trainables.measurements import CompileMeasurement, LearningCurve, PrecisionMeasurement
from trainables.outcomes import Durations
from trainables.storage import Storage


def checkpoint(step: int = 3, **changes: Any) -> Checkpoint:
    values: dict[str, Any] = {
        "trial_id": "a" * 16,
        "replicate": 1,
        "model": {"weight": torch.full((2, 3), float(step)), "count": torch.tensor(step)},
        "optimizer": {"state": {0: {"step": torch.tensor(3.0)}}, "param_groups": [{"betas": (0.9, 0.999), "lr": 1e-3}]},
        "schedule": {"last_epoch": 1},
        "scaler": {"scale": 65536.0},
        "generators": {"torch": torch.get_rng_state(), "python": [3, [1, 2], None]},
        "interval": 1,
        "epoch": 1,
        "batch": 2,
        "step": step,
        "losses": torch.tensor([1.0, 0.5]),
        "skipped_steps": 1,
        "curve": LearningCurve(accuracy=(0.5, None), validation_loss=(1.0, None), train_loss=(1.5, 1.0)),
        "window_images": (64, 64),
        "window_seconds": (0.5, 0.25),
        "window_merges": 1,
        "durations": Durations(setup_seconds=1.0, train_seconds=2.0, evaluation_seconds=0.5, trial_seconds=4.0),
        "compilation": CompileMeasurement(compile_seconds=1.0, cache="cold", graph_break_reasons=("print",)),
        "precision": PrecisionMeasurement(executed_precision="fp16", skipped_steps=1, final_loss_scale=2.0),
        "peak_memory_bytes": 123,
        "notes": ("a note",),
    }
    return Checkpoint(**(values | changes))


def in_folder(folder: Path) -> Checkpoints:
    return Checkpoints(Storage.open(str(folder)))


def load(folder: Path) -> tuple[Checkpoint | None, tuple[str, ...]]:
    return in_folder(folder).load("a" * 16, 1)


def assert_same(first: Any, second: Any) -> None:
    if isinstance(first, torch.Tensor):
        assert torch.equal(first, second)
        assert first.dtype == second.dtype
    elif isinstance(first, dict):
        assert first.keys() == second.keys()
        for key, value in first.items():
            assert_same(value, second[key])
    else:
        assert first == second
        assert type(first) is type(second)


def test_a_checkpoint_reads_back_as_it_was(tmp_path: Path) -> None:
    saved = checkpoint()
    in_folder(tmp_path).save(saved)
    loaded, notes = load(tmp_path)
    assert loaded is not None
    assert notes == ()
    for name in Checkpoint.__slots__:
        assert_same(getattr(saved, name), getattr(loaded, name))


def test_absent_measurements_stay_absent(tmp_path: Path) -> None:
    absent = {"compilation": None, "precision": None, "scaler": None, "skipped_steps": None, "peak_memory_bytes": None}
    in_folder(tmp_path).save(checkpoint(**absent))
    loaded, _ = load(tmp_path)
    assert loaded is not None
    assert {name: getattr(loaded, name) for name in absent} == absent


def test_the_two_latest_are_kept(tmp_path: Path) -> None:
    checkpoints = in_folder(tmp_path)
    for step in (5, 10, 15, 20):
        checkpoints.save(checkpoint(step))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step-000000015.pt", "step-000000020.pt"]


def test_where_there_is_none_nothing_is_loaded(tmp_path: Path) -> None:
    assert load(tmp_path / "never written") == (None, ())


@given(kept=st.floats(0, 1, exclude_max=True))
def test_a_truncated_checkpoint_is_passed_over_for_the_one_before(
    kept: float, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """B41: whatever part of the file is there, also none of it, also all but the last byte."""
    folder = tmp_path_factory.mktemp("cut")
    checkpoints = in_folder(folder)
    checkpoints.save(checkpoint(5))
    checkpoints.save(checkpoint(10))
    newest = folder / "step-000000010.pt"
    data = newest.read_bytes()
    newest.write_bytes(data[: int(kept * len(data))])
    loaded, notes = load(folder)
    assert loaded is not None
    assert loaded.step == 5
    assert len(notes) == 1
    assert notes[0].startswith("checkpoint step-000000010.pt could not be read (")
    assert notes[0].endswith("and was passed over")


@pytest.mark.parametrize("garbage", [b"", b"\x00" * 1000, b"PK\x03\x04 not a zip", b"just text"])
def test_where_none_is_whole_the_training_starts_again_and_says_so(tmp_path: Path, garbage: bytes) -> None:
    in_folder(tmp_path).save(checkpoint(5))
    (tmp_path / "step-000000005.pt").write_bytes(garbage)
    loaded, notes = load(tmp_path)
    assert loaded is None
    assert notes[-1] == "no whole checkpoint was left: the training started again"


def test_a_pickle_that_would_run_code_is_passed_over(tmp_path: Path) -> None:
    tmp_path.joinpath("step-000000009.pt").write_bytes(b"cos\nsystem\n(S'exit 1'\ntR.")
    loaded, notes = load(tmp_path)
    assert loaded is None
    assert "UnpicklingError" in notes[0]


def test_another_trials_checkpoint_is_passed_over(tmp_path: Path) -> None:
    checkpoints = in_folder(tmp_path)
    checkpoints.save(checkpoint(5))
    checkpoints.save(checkpoint(10, trial_id="b" * 16))
    loaded, notes = load(tmp_path)
    assert loaded is not None
    assert loaded.step == 5
    assert notes == (f"checkpoint step-000000010.pt is of another trial ({'b' * 16}) and was passed over",)


def test_a_bad_checkpoint_does_not_count_among_the_two_kept(tmp_path: Path) -> None:
    """Else a cut-off newest one would push out the good one that the training was continued from."""
    checkpoints = in_folder(tmp_path)
    checkpoints.save(checkpoint(5))
    (tmp_path / "step-000000020.pt").write_bytes(b"cut off")
    continued = in_folder(tmp_path)
    continued.load("a" * 16, 1)
    continued.save(checkpoint(10))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step-000000005.pt", "step-000000010.pt"]


def test_other_files_in_the_folder_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "model.pt").write_text("mine")
    checkpoints = in_folder(tmp_path)
    for step in (1, 2, 3):
        checkpoints.save(checkpoint(step))
    assert (tmp_path / "notes.txt").exists()
    assert (tmp_path / "model.pt").exists()


@pytest.mark.parametrize("value", [np.float64(0.5), np.int64(3), np.float32(0.25)])
def test_a_numpy_number_becomes_a_plain_one(tmp_path: Path, value: Any) -> None:
    in_folder(tmp_path).save(checkpoint(model={"best": value}))
    loaded, _ = load(tmp_path)
    assert loaded is not None
    assert loaded.model["best"] == value.item()
    assert type(loaded.model["best"]) is type(value.item())


@pytest.mark.parametrize("value", [np.ones(2), torch.float16, {1}, Path("/x"), object()])
def test_what_the_safe_loader_would_refuse_is_refused_when_saving(tmp_path: Path, value: Any) -> None:
    with pytest.raises(
        TypeError, match=r"a checkpoint holds tensors and plain numbers only, model\['extra'\]\[1\] is a"
    ):
        in_folder(tmp_path).save(checkpoint(model={"extra": [0, value]}))
    assert list(tmp_path.iterdir()) == []
