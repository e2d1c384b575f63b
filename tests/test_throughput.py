"""Where a trial's images per second come from."""

from pathlib import Path

import pytest

from tests.trial_building import checkpoints_in, last_checkpoint, run_toy, toy_spec, trained_hash, weights_hash
from trainables.measurements import ThroughputMeasurement
from trainables.outcomes import TrialStatus
from trainables.specs import MeasurementProtocol
from trainables.throughput import more_windows, needs_a_copy, seconds_per_image, windows_of
from trainables.timing import DeviceClock, WindowTimer

PROTOCOL = MeasurementProtocol(epochs=1, windows=30, copy_seconds=5.0)
CLOCK = DeviceClock(synchronize=lambda: None, clock=lambda: 0.0)

SHORT_WINDOWS = {"window_seconds": 1e-6, "window_steps": 1, "warmup_steps": 2}
"""Every step is a window, so that what a window holds does not depend on the machine."""


def timer(*seconds: float) -> WindowTimer:
    return WindowTimer(PROTOCOL, CLOCK, images=(64,) * len(seconds), seconds=seconds)


def measured(windows: int, on: str) -> ThroughputMeasurement:
    return ThroughputMeasurement(window_images=(64,) * windows, window_seconds=(0.1,) * windows, measured_on=on)


def test_enough_windows_of_the_training_need_no_copy() -> None:
    assert not needs_a_copy(timer(*[0.05] * 30), PROTOCOL)
    assert needs_a_copy(timer(*[0.05] * 29), PROTOCOL)
    assert needs_a_copy(timer(), PROTOCOL)


def test_no_copy_is_made_where_it_would_give_fewer_windows_than_there_are() -> None:
    """Steps of a second: 5 seconds of a copy give two windows, the training had twenty."""
    assert not needs_a_copy(timer(*[2.0] * 20), PROTOCOL)
    assert needs_a_copy(timer(2.0), PROTOCOL)


def test_windows_of_the_training_and_of_a_copy_are_not_mixed() -> None:
    training, copied = measured(3, "training"), measured(4, "copy")
    assert more_windows(training, copied) is copied
    assert more_windows(training, measured(3, "copy")) is training
    assert more_windows(training, None) is training
    assert more_windows(None, copied) is copied
    assert more_windows(None, None) is None


def test_the_rate_is_that_of_the_median_window() -> None:
    uneven = ThroughputMeasurement(
        window_images=(100, 200, 100), window_seconds=(1.0, 4.0, 30.0), measured_on="training"
    )
    assert seconds_per_image(uneven) == 0.02
    assert seconds_per_image(None) is None


def test_no_window_is_no_measurement() -> None:
    assert windows_of(timer()) is None
    assert windows_of(None) is None


def test_a_long_enough_training_is_measured_in_itself() -> None:
    outcome = run_toy(toy_spec(protocol={"epochs": 3, "windows": 10} | SHORT_WINDOWS))
    assert outcome.throughput is not None
    assert outcome.throughput.measured_on == "training"
    assert sum(outcome.throughput.window_images) == (3 * 6 - 2) * 16


def test_a_validation_set_of_any_size_leaves_the_windows_images_as_they_are() -> None:
    """B05"""
    for validation in (40, 400):
        spec = toy_spec(dataset_args={"validation": validation}, protocol={"epochs": 3, "windows": 10} | SHORT_WINDOWS)
        outcome = run_toy(spec)
        assert outcome.throughput is not None
        assert set(outcome.throughput.window_images) == {16}
        assert outcome.durations.evaluation_seconds > 0


def test_a_short_training_is_followed_by_measuring_on_a_copy() -> None:
    outcome = run_toy(toy_spec(protocol={"epochs": 1, "windows": 12} | SHORT_WINDOWS))
    assert outcome.throughput is not None
    assert outcome.throughput.measured_on == "copy"
    assert outcome.throughput.window_images == (16,) * 12


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_measuring_on_a_copy_changes_nothing_that_is_kept(tmp_path: Path, precision: str) -> None:
    from trainables.specs import Precision

    knobs = {
        "dataset": "noisy_stripes",
        "model_args": {"dropout": 0.5, "norm": True},
        "precision": Precision(precision),
    }
    with_copy = toy_spec(protocol={"windows": 30} | SHORT_WINDOWS, **knobs)
    copied = run_toy(with_copy, checkpoints=checkpoints_in(tmp_path / "copy"))
    assert copied.throughput is not None
    assert copied.throughput.measured_on == "copy"
    plain = run_toy(toy_spec(**knobs))
    assert copied.curve == plain.curve
    assert copied.precision == plain.precision
    kept = weights_hash(last_checkpoint(with_copy, tmp_path / "copy"))
    assert kept == trained_hash(toy_spec(**knobs), tmp_path / "plain")


def test_a_training_too_short_to_be_timed_says_so() -> None:
    """B02: no number rather than one of the warm-up."""
    outcome = run_toy(toy_spec(protocol={"epochs": 1, "window_seconds": 1e6, "windows": 0}))
    assert outcome.status is TrialStatus.COMPLETED
    assert outcome.throughput is None
    assert any(note.startswith("too short to be timed") for note in outcome.notes)


@pytest.mark.parametrize(("exits", "error"), [(False, "KeyError"), (True, "SystemExit")])
def test_a_model_that_fails_while_it_is_measured_keeps_its_training(exits: bool, error: str) -> None:
    spec = toy_spec(
        "raising_from_step",
        model_args={"step": 8, "exits": exits},
        protocol={"epochs": 1, "windows": 30} | SHORT_WINDOWS,
    )
    outcome = run_toy(spec)
    assert outcome.status is TrialStatus.COMPLETED
    assert outcome.throughput is not None
    assert outcome.throughput.measured_on == "training"
    assert any(note.startswith(f"measuring on a copy ended early: {error}") for note in outcome.notes)


def test_a_continued_trial_keeps_its_windows_and_drops_the_broken_one(tmp_path: Path) -> None:
    spec = toy_spec(protocol={"epochs": 4, "windows": 10} | SHORT_WINDOWS)
    first = run_toy(spec, checkpoints=checkpoints_in(tmp_path), segment_end=2)
    second = run_toy(spec, checkpoints=checkpoints_in(tmp_path))
    assert first.throughput is not None
    assert second.throughput is not None
    assert first.throughput.measured_on == second.throughput.measured_on == "training"
    assert second.throughput.window_seconds[:10] == first.throughput.window_seconds
    assert sum(second.throughput.window_images) == (4 * 6 - 2 * 2) * 16
