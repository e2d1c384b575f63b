"""The loop in parts: exact rates by a simulated clock, a bounded time, and no trace in what is kept."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.test_timing import FakeDevice
from tests.toy_entries import SIMULATED
from tests.trial_building import (
    DIAGNOSED,
    ONE_THREAD,
    checkpoints_in,
    last_checkpoint,
    run_toy,
    toy_spec,
    weights_hash,
)
from trainables.checkpoints import Checkpoint
from trainables.diagnosis import diagnose, diagnosis_budget, host_fraction
from trainables.measurements import DiagnosisMeasurement, ThroughputMeasurement
from trainables.outcomes import TrialOutcome, TrialStatus
from trainables.specs import TrialSpec
from trainables.throughput import seconds_per_image, windows_of
from trainables.timing import DeviceClock
from trainables.trial import Trial, TrialEnvironment, run_trial
from trainables.trial_setup import TrialParts, build_parts

CPU = torch.device("cpu")
CLOCK = DeviceClock(synchronize=lambda: None, clock=lambda: SIMULATED.now)


@contextmanager
def trained(spec: TrialSpec) -> Iterator[TrialParts]:
    """12 steps of 16 images by the simulated clock, the first of them uncounted."""
    with ExitStack() as resources:
        parts = build_parts(spec, None, device=CPU, clock=CLOCK, resources=resources)
        parts.timer.resume(uncounted_steps=1)
        parts.training.train_to(12, parts.timer)
        parts.timer.pause()
        yield parts


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    end_to_end: float | None
    compute: float | None
    loader: float | None
    seconds: float
    notes: tuple[str, ...]


def images_per_second(measured: ThroughputMeasurement | None) -> float | None:
    per_image = seconds_per_image(measured)
    return None if per_image is None else 1 / per_image


def diagnosed(*, item_seconds: float, step_seconds: float, budget_seconds: float = 1.0, **knobs: Any) -> Rates:
    spec = toy_spec(
        "waiting_mlp",
        "waiting_stripes",
        model_args={"seconds": step_seconds},
        dataset_args={"seconds": item_seconds},
        protocol={"epochs": 2},
        **knobs,
    )
    with trained(spec) as parts:
        throughput = windows_of(parts.timer)
        measured, notes = diagnose(parts, spec, CLOCK, throughput=throughput, budget_seconds=budget_seconds)
    return Rates(
        end_to_end=images_per_second(throughput),
        compute=images_per_second(measured.compute),
        loader=images_per_second(measured.loader),
        seconds=measured.diagnosis_seconds,
        notes=notes,
    )


def test_each_part_of_the_loop_gets_its_own_rate() -> None:
    """16 items of 1/256 s are 1/16 s a batch; a step is 1/64 s; the loop takes both in turn."""
    rates = diagnosed(item_seconds=1 / 256, step_seconds=1 / 64)
    assert (rates.loader, rates.compute, rates.notes) == (256.0, 1024.0, ())
    assert rates.end_to_end == 16 / (1 / 16 + 1 / 64)


def test_a_model_that_is_slow_shows_in_compute_alone() -> None:
    rates = diagnosed(item_seconds=1 / 4096, step_seconds=1 / 8)
    assert (rates.loader, rates.compute, rates.notes) == (4096.0, 128.0, ())


@pytest.mark.parametrize(
    ("item_seconds", "step_seconds"), [(1 / 256, 1 / 64), (1 / 4096, 1 / 8), (1 / 64, 1 / 64), (1 / 4096, 1 / 4)]
)
@pytest.mark.parametrize("budget_seconds", [1.0, 3.0])
def test_the_whole_diagnosis_keeps_to_its_time(item_seconds: float, step_seconds: float, budget_seconds: float) -> None:
    """But for the step or batch in hand."""
    rates = diagnosed(item_seconds=item_seconds, step_seconds=step_seconds, budget_seconds=budget_seconds)
    assert rates.seconds <= budget_seconds + max(step_seconds, 16 * item_seconds)
    assert None not in (rates.compute, rates.loader)


def test_much_time_is_not_used_up_once_there_are_windows_enough() -> None:
    rates = diagnosed(item_seconds=1 / 256, step_seconds=1 / 64, budget_seconds=1000.0)
    assert rates.seconds == 1 / 64 + 20 * 4 / 64 + 20 * 2 / 16


def test_a_loader_too_slow_for_the_time_is_left_out_and_said() -> None:
    """A batch of 1/2 s: two of them do not fit; compute alone still does."""
    rates = diagnosed(item_seconds=1 / 32, step_seconds=1 / 64)
    assert (rates.loader, rates.compute) == (None, 1024.0)
    assert rates.notes == (
        "the loader alone was not measured: too few batches fit into the time of the diagnosis, 5% of the trial's time "
        "and at least 1 s",
    )
    assert rates.seconds < 1.0


def test_nothing_is_begun_that_one_step_alone_would_make_too_long() -> None:
    """Whether the step of 2 s is the loader's or the model's is not known beforehand."""
    rates = diagnosed(item_seconds=1 / 4096, step_seconds=2.0)
    assert (rates.loader, rates.compute, rates.seconds) == (None, None, 0.0)
    assert [note.split(" was not")[0] for note in rates.notes] == ["compute alone", "the loader alone"]


def test_a_training_too_short_for_a_window_still_gets_both_parts() -> None:
    spec = toy_spec(
        "waiting_mlp",
        "waiting_stripes",
        model_args={"seconds": 1 / 64},
        dataset_args={"seconds": 1 / 256},
        protocol={"epochs": 2},
    )
    with trained(spec) as parts:
        measured, notes = diagnose(parts, spec, CLOCK, throughput=None, budget_seconds=1.0)
    assert (images_per_second(measured.compute), images_per_second(measured.loader), notes) == (1024.0, 256.0, ())


@pytest.mark.parametrize(("trial", "budget"), [(0.5, 1.0), (19.0, 1.0), (40.0, 2.0), (1000.0, 50.0), (1e5, 60.0)])
def test_a_diagnosis_takes_a_twentieth_of_a_trial_and_a_second_of_a_short_one(trial: float, budget: float) -> None:
    assert diagnosis_budget(trial) == budget


def test_the_host_fraction_is_what_giving_steps_to_the_device_takes_of_their_time() -> None:
    """B01: steps of 1/4 s that the host gives within 1/32 s each; and steps that the device finishes before that."""
    device = FakeDevice(host_seconds=1 / 32)
    assert host_fraction(lambda: device.submit(1 / 4), device.clock()) == (2 / 32) / (1 / 32 + 2 / 4)
    assert host_fraction(lambda: device.submit(0.0), device.clock()) == 1.0


def run_diagnosed(spec: TrialSpec, folder: Path | None = None) -> TrialOutcome:
    checkpoints = None if folder is None else checkpoints_in(folder)
    return run_trial(spec, environment=DIAGNOSED, checkpoints=checkpoints)


def content(checkpoint: Checkpoint) -> list[object]:
    """All of it that is no duration."""
    state = checkpoint.optimizer["state"]
    return [
        weights_hash(checkpoint),
        {place: {name: value.tolist() for name, value in entry.items()} for place, entry in state.items()},
        checkpoint.schedule,
        checkpoint.scaler,
        {name: str(value) for name, value in checkpoint.generators.items()},
        checkpoint.curve,
        checkpoint.precision,
        checkpoint.step,
    ]


AUGMENTED: dict[str, Any] = {"dataset": "noisy_stripes", "model_args": {"dropout": 0.3, "norm": True}}


@pytest.mark.parametrize("num_workers", [0, 1, 3])
def test_the_diagnosis_changes_no_bit_of_what_is_kept(tmp_path: Path, num_workers: int) -> None:
    """Hashes of all weights, and the rest of the checkpoint, on and off; also where an epoch was interrupted."""
    spec = toy_spec(num_workers=num_workers, protocol={"epochs": 2, "report_every_steps": 2}, **AUGMENTED)
    contents = []
    for name, environment in (("on", DIAGNOSED), ("off", ONE_THREAD)):
        through = run_trial(spec, environment=environment, checkpoints=checkpoints_in(tmp_path / name))
        assert (through.diagnosis is not None) == environment.diagnose
        contents.append(content(last_checkpoint(spec, tmp_path / name)))
        with Trial(spec, environment=environment, checkpoints=checkpoints_in(tmp_path / f"{name} cut")) as trial:
            trial.advance()
            trial.save()
        run_trial(spec, environment=environment, checkpoints=checkpoints_in(tmp_path / f"{name} cut"))
        contents.append(content(last_checkpoint(spec, tmp_path / f"{name} cut")))
    assert contents == [contents[0]] * 4


def test_a_segment_after_a_diagnosed_one_trains_on_as_if_it_had_not_been(tmp_path: Path) -> None:
    spec = toy_spec(protocol={"epochs": 3}, **AUGMENTED)
    run_trial(spec, environment=DIAGNOSED, checkpoints=checkpoints_in(tmp_path / "on"), segment_end=1)
    run_diagnosed(spec, tmp_path / "on")
    run_toy(spec, checkpoints=checkpoints_in(tmp_path / "off"))
    assert content(last_checkpoint(spec, tmp_path / "on")) == content(last_checkpoint(spec, tmp_path / "off"))


def test_the_diagnosis_changes_no_part_of_the_outcome_but_its_own() -> None:
    spec = toy_spec(protocol={"epochs": 2, "window_seconds": 1e-6}, **AUGMENTED)
    on, off = run_diagnosed(spec), run_toy(spec)
    assert (on.curve, on.precision, on.notes) == (off.curve, off.precision, off.notes)
    assert on.throughput is not None
    assert off.throughput is not None
    assert on.throughput.window_images == off.throughput.window_images
    assert on.throughput.measured_on == "training"
    assert off.diagnosis is None
    assert on.diagnosis is not None
    assert on.durations.trial_seconds > on.diagnosis.diagnosis_seconds > 0


@pytest.mark.parametrize("num_workers", [0, 3])
def test_the_windows_of_each_part_hold_whole_batches_in_whole_bunches(num_workers: int) -> None:
    spec = toy_spec(num_workers=num_workers, protocol={"epochs": 2, "window_seconds": 1e-6})
    diagnosis = run_diagnosed(spec).diagnosis
    assert diagnosis is not None
    assert diagnosis.compute is not None
    assert diagnosis.loader is not None
    assert (diagnosis.compute.measured_on, diagnosis.loader.measured_on) == ("resident_batch", "loader")
    assert diagnosis.host_fraction is None
    assert set(diagnosis.compute.window_images) == {2 * 16}
    assert set(diagnosis.loader.window_images) == {max(2, num_workers) * 16}


def test_weights_are_as_they_were_before_the_diagnosis() -> None:
    with trained(
        toy_spec("waiting_mlp", "waiting_stripes", model_args={"seconds": 0.1}, dataset_args={"seconds": 0.01})
    ) as parts:
        model = parts.training.model
        before = {name: value.clone() for name, value in model.state_dict().items()}
        random_state = torch.get_rng_state()
        diagnose(parts, toy_spec(), CLOCK, throughput=None, budget_seconds=1.0)
        assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
        assert torch.equal(torch.get_rng_state(), random_state)


def test_a_model_that_fails_in_the_diagnosis_keeps_its_training_and_its_loaders_rate() -> None:
    outcome = run_diagnosed(toy_spec("raising_from_step", model_args={"step": 13}))
    assert outcome.status is TrialStatus.COMPLETED
    assert outcome.diagnosis is not None
    assert outcome.diagnosis.compute is None
    assert outcome.diagnosis.loader is not None
    assert any(note.startswith("measuring compute alone ended early: KeyError") for note in outcome.notes)


def test_a_data_set_that_fails_in_the_diagnosis_keeps_the_training() -> None:
    outcome = run_diagnosed(toy_spec(dataset="raising_once_drawn", dataset_args={"draws": 1000}))
    assert outcome.status is TrialStatus.COMPLETED
    assert outcome.diagnosis is not None
    assert outcome.diagnosis.compute is not None
    assert outcome.diagnosis.loader is None
    assert any(note.startswith("measuring the loader alone ended early: OSError") for note in outcome.notes)


def test_a_trial_that_was_finished_before_is_trained_no_further_for_a_diagnosis(tmp_path: Path) -> None:
    spec = toy_spec()
    run_toy(spec, checkpoints=checkpoints_in(tmp_path))
    again = run_diagnosed(spec, tmp_path)
    assert again.diagnosis is not None
    assert again.diagnosis.compute is None
    assert "compute alone was not measured: the training ended in an earlier process" in again.notes


def test_a_diagnosis_that_nobody_wants_is_left_out() -> None:
    assert run_trial(toy_spec(), environment=TrialEnvironment(device="cpu", diagnose=False)).diagnosis is None
    assert DiagnosisMeasurement().compute is None
