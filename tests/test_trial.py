"""A trial from its spec to its outcome."""

import math
import multiprocessing
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.toy_entries import Modes
from tests.trial_building import (
    ONE_THREAD,
    checkpoints_in,
    interrupted_hash,
    last_checkpoint,
    run_toy,
    toy_spec,
    trained_hash,
    weights_hash,
)
from trainables.outcomes import TrialOutcome, TrialStatus, outcome_from_json, outcome_to_json
from trainables.precision import Switches
from trainables.specs import CompileMode, Optimizer, Precision
from trainables.trial import Progress, Trial, TrialEnvironment

HALVES = [Precision.FP32, Precision.FP16, Precision.BF16]


def test_a_trial_learns_and_records_what_it_did() -> None:
    outcome = run_toy(toy_spec(protocol={"epochs": 6}, lr=1e-2))
    assert outcome.status is TrialStatus.COMPLETED
    assert outcome.status_reason is None
    assert outcome.accuracy is not None
    assert outcome.accuracy > 0.8
    assert outcome.curve is not None
    assert len(outcome.curve.accuracy) == len(outcome.curve.train_loss) == len(outcome.curve.validation_loss) == 6
    assert outcome.curve.train_loss[-1] < outcome.curve.train_loss[0] < 1.2 * math.log(10)
    assert (outcome.epochs_completed, outcome.segment_start, outcome.segment_end) == (6, 0, 6)
    assert (outcome.num_classes, outcome.validation_images) == (10, 40)
    assert outcome.device.device == "cpu"
    assert outcome.placement.cpu_threads == 1
    assert outcome.peak_memory_bytes is None
    assert outcome.durations.trial_seconds >= outcome.durations.train_seconds > 0
    assert outcome_from_json(outcome_to_json(outcome)) == outcome


@pytest.mark.parametrize("precision", HALVES)
def test_the_precision_that_was_asked_for_really_runs_on_a_cpu(precision: Precision) -> None:
    outcome = run_toy(toy_spec(precision=precision))
    assert outcome.precision is not None
    assert outcome.precision.executed_precision == precision.value
    assert (outcome.precision.skipped_steps is None) == (precision is not Precision.FP16)
    assert (outcome.precision.final_loss_scale is None) == (precision is not Precision.FP16)
    assert (outcome.precision.matmul_precision, outcome.precision.convolution_tf32) == ("highest", False)
    assert outcome.precision.cudnn_benchmark is True


def test_the_first_report_comes_with_the_first_advance() -> None:
    with Trial(toy_spec(), environment=ONE_THREAD) as trial:
        first = trial.advance()
        assert isinstance(first, Progress)
        assert (first.epoch, first.epochs, first.step) == (1.0, 2, 6)
        assert first.accuracy is not None
        last = trial.advance()
        assert isinstance(last, TrialOutcome)
        assert trial.advance() is last


def test_a_report_within_an_epoch_evaluates_nothing() -> None:
    with Trial(toy_spec("modes", protocol={"epochs": 1, "report_every_steps": 4}), environment=ONE_THREAD) as trial:
        report = trial.advance()
        assert isinstance(report, Progress)
        assert (report.epoch, report.step, report.accuracy) == (pytest.approx(4 / 6), 4, None)
        assert {mode for mode, _ in Modes.seen} == {"train"}
        assert isinstance(trial.advance(), TrialOutcome)
    assert {mode for mode, _ in Modes.seen} == {"train", "evaluate"}


def test_max_steps_crosses_epochs_and_evaluates_each_interval() -> None:
    outcome = run_toy(toy_spec("modes", protocol={"epochs": None, "max_steps": 10, "report_every_steps": 4}))
    assert outcome.epochs_completed == 3
    assert [size for mode, size in Modes.seen if mode == "train"] == [16] * 10
    assert outcome.curve is not None
    assert len(outcome.curve.accuracy) == 3


def test_the_model_trains_in_training_mode_again_after_every_evaluation() -> None:
    """B28"""
    run_toy(toy_spec("modes"))
    epoch = [("train", 16)] * 6 + [("evaluate", 16), ("evaluate", 16), ("evaluate", 8)]
    assert Modes.seen == epoch * 2


def test_a_last_batch_of_one_image_does_not_reach_batch_norm() -> None:
    """B25: 97 images are six batches of 16 and one image."""
    outcome = run_toy(toy_spec(model_args={"norm": True}, dataset_args={"train": 97}))
    assert outcome.status is TrialStatus.COMPLETED
    assert any("1 of 97 training images" in note for note in outcome.notes)


@pytest.mark.parametrize("value", ["nan", "inf"])
def test_a_loss_that_is_not_finite_ends_the_trial_with_the_step(value: str) -> None:
    """B29: although every evaluation is fine and shows a finite accuracy."""
    spec = toy_spec("nan_from_step", model_args={"step": 9, "value": float(value)})
    outcome = run_toy(spec)
    assert outcome.status is TrialStatus.DIVERGED
    assert (outcome.status_reason or "").startswith("loss became NaN at step 9: first not finite in")
    assert outcome.epochs_completed == 1


def test_a_nan_is_caught_at_the_report_it_happened_in() -> None:
    spec = toy_spec("nan_from_step", model_args={"step": 2}, protocol={"epochs": 50, "report_every_steps": 3})
    with Trial(spec, environment=ONE_THREAD) as trial:
        outcome = trial.advance()
    assert isinstance(outcome, TrialOutcome)
    assert (outcome.status_reason or "").startswith("loss became NaN at step 2: ")
    assert outcome.curve is None


def test_a_validation_loss_that_is_not_finite_ends_the_trial() -> None:
    outcome = run_toy(toy_spec("nan_in_evaluation"))
    assert outcome.status is TrialStatus.DIVERGED
    assert (outcome.status_reason or "").startswith("validation loss became NaN by step 6: ")
    assert outcome.curve is not None
    assert outcome.curve.validation_loss == (None,)


def test_a_weight_that_is_not_finite_ends_the_trial_even_where_nothing_shows_it() -> None:
    outcome = run_toy(toy_spec("hidden_nan_weight"))
    assert outcome.status is TrialStatus.DIVERGED
    assert (outcome.status_reason or "").startswith("weights became NaN or infinite by step 6: ")


def test_overflows_that_the_scaler_skips_are_counted_and_are_no_divergence() -> None:
    """B07"""
    spec = toy_spec("overflowing", model_args={"steps": [1, 4, 5]}, precision=Precision.FP16)
    outcome = run_toy(spec)
    assert outcome.status is TrialStatus.COMPLETED
    assert outcome.precision is not None
    assert outcome.precision.skipped_steps == 3
    assert outcome.precision.final_loss_scale == 2.0**13


def test_too_large_a_batch_is_out_of_memory_and_the_next_trial_is_unharmed() -> None:
    """B39"""
    ends = [run_toy(toy_spec("out_of_memory_above", batch_size=size)) for size in (16, 64, 32)]
    assert [end.status for end in ends] == [TrialStatus.COMPLETED, TrialStatus.OUT_OF_MEMORY, TrialStatus.COMPLETED]
    assert ends[1].status_reason == ("out of memory at batch 64: CUDA out of memory. Tried to allocate 20.00 GiB")


def test_the_hosts_memory_can_run_out_too() -> None:
    assert run_toy(toy_spec("host_out_of_memory")).status is TrialStatus.OUT_OF_MEMORY


def test_a_raising_model_is_a_failure_with_its_place() -> None:
    outcome = run_toy(toy_spec("raising"))
    assert outcome.status is TrialStatus.FAILED
    assert (outcome.status_reason or "").startswith("KeyError: 'no such layer' (toy_entries.py:")


def test_a_model_that_exits_the_process_ends_its_trial_only() -> None:
    assert run_toy(toy_spec("exiting")).status is TrialStatus.FAILED


def test_a_model_that_is_not_there_is_a_failure_in_words() -> None:
    outcome = run_toy(toy_spec("no_such_model"))
    assert outcome.status is TrialStatus.FAILED
    assert "no_such_model" in (outcome.status_reason or "")


def test_labels_beyond_the_classes_are_a_failure_in_words() -> None:
    outcome = run_toy(toy_spec(dataset="labels_beyond_the_classes"))
    assert outcome.status is TrialStatus.FAILED
    assert "99" in (outcome.status_reason or "")


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("too_few_logits", "must return logits of the shape (16, 10), got (16, 3)"),
        ("two_outputs", "it returned a tuple; it must return one tensor, the logits"),
        ("flat_logits", "got (16,)"),
    ],
)
def test_logits_that_do_not_fit_the_labels_are_a_failure_in_words(model: str, said: str) -> None:
    """On a GPU a label beyond the logits would spoil the process for every trial after it."""
    outcome = run_toy(toy_spec(model))
    assert outcome.status is TrialStatus.FAILED
    assert said in (outcome.status_reason or "")


def test_a_loader_worker_that_dies_is_a_failure_with_a_hint() -> None:
    outcome = run_toy(toy_spec(dataset="dying_worker", num_workers=1))
    assert outcome.status is TrialStatus.FAILED
    assert "a data loader worker died" in (outcome.status_reason or "")


def test_what_a_device_cannot_run_is_refused_before_anything_is_loaded() -> None:
    outcome = run_toy(toy_spec("no_such_model", precision=Precision.TF32))
    assert outcome.status is TrialStatus.UNSUPPORTED
    assert "TF32" in (outcome.status_reason or "")


def test_without_a_compiler_only_the_compiled_trial_is_unsupported(monkeypatch: pytest.MonkeyPatch) -> None:
    """B16"""
    monkeypatch.setenv("CXX", "/nonexistent/g++")
    ends = [run_toy(toy_spec(compile=mode)).status for mode in (CompileMode.DEFAULT, CompileMode.OFF)]
    assert ends == [TrialStatus.UNSUPPORTED, TrialStatus.COMPLETED]


@pytest.mark.parametrize("model", ["mlp", "nan_from_step", "raising", "sets_tf32"])
def test_the_process_is_as_before_whatever_the_end(model: str) -> None:
    threads, switches = torch.get_num_threads(), Switches.now()
    random_state = torch.get_rng_state()
    run_toy(toy_spec(model))
    with Trial(toy_spec(model), environment=TrialEnvironment(device="cpu", cpu_threads=threads + 1)) as trial:
        trial.advance()
    assert torch.get_num_threads() == threads
    assert Switches.now() == switches
    assert torch.equal(torch.get_rng_state(), random_state)


def test_tf32_that_a_users_code_turned_on_does_not_run_under_the_label_fp32() -> None:
    built = run_toy(toy_spec("sets_tf32"))
    in_forward = run_toy(toy_spec("sets_tf32", model_args={"in_forward": True}))
    assert built.precision is not None
    assert in_forward.precision is not None
    assert built.precision.executed_precision == "fp32"
    assert in_forward.precision.executed_precision == "tf32"


@pytest.mark.parametrize("model", ["mlp", "raising", "nan_from_step"])
def test_no_loader_worker_outlives_its_trial(model: str) -> None:
    before = multiprocessing.active_children()
    run_toy(toy_spec(model, num_workers=2))
    with Trial(toy_spec(model, num_workers=2), environment=ONE_THREAD) as trial:
        trial.advance()
    assert multiprocessing.active_children() == before


def test_the_threads_that_were_asked_for_are_used_and_recorded() -> None:
    before = torch.get_num_threads()
    with Trial(toy_spec(), environment=TrialEnvironment(device="cpu", cpu_threads=before + 1)) as trial:
        trial.advance()
        assert torch.get_num_threads() == before + 1
        outcome = trial.advance()
    assert isinstance(outcome, TrialOutcome)
    assert outcome.placement.cpu_threads == before + 1


@pytest.mark.parametrize("model_args", [{}, {"dropout": 0.5}])
@pytest.mark.parametrize("dataset", ["stripes", "noisy_stripes"])
def test_the_weights_are_the_same_whatever_num_workers_is(
    tmp_path: Path, dataset: str, model_args: dict[str, Any]
) -> None:
    hashes = {
        trained_hash(toy_spec(dataset=dataset, model_args=model_args, num_workers=workers), tmp_path / str(workers))
        for workers in (0, 1, 2)
    }
    assert len(hashes) == 1


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("optimizer", Optimizer)
@pytest.mark.parametrize("precision", HALVES)
def test_an_interruption_anywhere_changes_no_bit_of_the_weights(
    tmp_path: Path, precision: Precision, optimizer: Optimizer, channels_last: bool
) -> None:
    """Also within an epoch, with augmentation and dropout, whose draws go on where they were."""
    spec = toy_spec(
        dataset="noisy_stripes",
        model_args={"dropout": 0.3, "norm": True},
        precision=precision,
        optimizer=optimizer,
        channels_last=channels_last,
        gradient_clip_norm=1.0,
        protocol={"epochs": 2, "report_every_steps": 2},
    )
    through = trained_hash(spec, tmp_path / "through")
    assert {interrupted_hash(spec, tmp_path / str(after), after=after) for after in range(1, 6)} == {through}


def test_an_interruption_with_workers_and_max_steps_changes_no_bit(tmp_path: Path) -> None:
    spec = toy_spec(
        dataset="noisy_stripes",
        num_workers=2,
        protocol={"epochs": None, "max_steps": 14, "report_every_steps": 5},
        model_args={"dropout": 0.3},
    )
    through = trained_hash(spec, tmp_path / "through")
    assert {interrupted_hash(spec, tmp_path / str(after), after=after) for after in (1, 2)} == {through}


def test_an_interruption_changes_no_number_of_the_curve(tmp_path: Path) -> None:
    untimed = {"window_seconds": 1e9}  # else a note on the timing depends on how busy the machine is
    spec = toy_spec(protocol={"epochs": 2, "report_every_steps": 2} | untimed)
    through = run_toy(spec)
    with Trial(spec, checkpoints=checkpoints_in(tmp_path), environment=ONE_THREAD) as trial:
        for _ in range(2):
            trial.advance()
        trial.save()
    continued = run_toy(spec, checkpoints=checkpoints_in(tmp_path))
    assert continued.curve == through.curve
    assert continued.notes == through.notes


def test_a_segment_ends_early_and_the_next_one_goes_on_from_it(tmp_path: Path) -> None:
    spec = toy_spec(protocol={"epochs": 4})
    first = run_toy(spec, checkpoints=checkpoints_in(tmp_path), segment_end=1)
    assert first.status is TrialStatus.STOPPED_EARLY
    assert first.status_reason == "its segment ended after 1 of 4 epochs"
    assert (first.segment_start, first.segment_end, first.epochs_completed) == (0, 1, 1)
    second = run_toy(spec, checkpoints=checkpoints_in(tmp_path))
    assert second.status is TrialStatus.COMPLETED
    assert (second.segment_start, second.segment_end, second.epochs_completed) == (1, 4, 4)
    assert second.durations.train_seconds > first.durations.train_seconds
    assert weights_hash(last_checkpoint(spec, tmp_path)) == trained_hash(spec, tmp_path / "through")


def test_a_trial_that_was_finished_before_trains_nothing_more(tmp_path: Path) -> None:
    spec = toy_spec("modes")
    first = run_toy(spec, checkpoints=checkpoints_in(tmp_path))
    again = run_toy(spec, checkpoints=checkpoints_in(tmp_path))
    assert Modes.seen == []
    assert again.status is TrialStatus.COMPLETED
    assert again.curve == first.curve
    assert again.precision == first.precision


def test_a_truncated_checkpoint_costs_work_and_no_accuracy_and_is_said(tmp_path: Path) -> None:
    """B41"""
    spec = toy_spec(dataset="noisy_stripes", protocol={"epochs": 3})
    with Trial(spec, checkpoints=checkpoints_in(tmp_path / "cut"), environment=ONE_THREAD) as trial:
        for _ in range(2):
            trial.advance()
            trial.save()
    newest = max((tmp_path / "cut").iterdir())
    newest.write_bytes(newest.read_bytes()[: newest.stat().st_size // 2])
    outcome = run_toy(spec, checkpoints=checkpoints_in(tmp_path / "cut"))
    assert outcome.segment_start == 1
    assert any(f"checkpoint {newest.name} could not be read" in note for note in outcome.notes)
    assert weights_hash(last_checkpoint(spec, tmp_path / "cut")) == trained_hash(spec, tmp_path / "through")


def test_replicates_train_from_other_seeds_and_do_not_share_checkpoints(tmp_path: Path) -> None:
    from dataclasses import replace

    spec = toy_spec()
    first = trained_hash(spec, tmp_path)
    second = trained_hash(replace(spec, replicate=1), tmp_path)
    assert first != second
    assert second == trained_hash(toy_spec(seed=1), tmp_path / "seed 1")


def test_an_earlier_trial_of_the_process_changes_no_bit_of_a_later_one(tmp_path: Path) -> None:
    """A B A, and with an end that is bad in between: the two A are the same."""
    spec = toy_spec(dataset="noisy_stripes", model_args={"dropout": 0.3, "norm": True})
    first = trained_hash(spec, tmp_path / "first")
    run_toy(toy_spec(precision=Precision.FP16, num_workers=1))
    run_toy(toy_spec("raising"))
    assert trained_hash(spec, tmp_path / "second") == first


def test_checkpoints_within_a_trial_are_written_when_their_time_has_come(tmp_path: Path) -> None:
    spec = toy_spec(protocol={"epochs": 3})
    always = TrialEnvironment(device="cpu", cpu_threads=1, checkpoint_every_seconds=0.0)
    for folder, environment in (("always", always), ("rarely", ONE_THREAD)):
        with Trial(spec, checkpoints=checkpoints_in(tmp_path / folder), environment=environment) as trial:
            trial.advance()
            trial.advance()
    assert len(list((tmp_path / "always").iterdir())) == 2
    assert not (tmp_path / "rarely").exists()


def test_saving_before_the_first_step_or_after_the_end_does_nothing(tmp_path: Path) -> None:
    trial = Trial(toy_spec(), checkpoints=checkpoints_in(tmp_path), environment=ONE_THREAD)
    trial.save()
    assert list(tmp_path.iterdir()) == []
    while not isinstance(trial.advance(), TrialOutcome):
        pass
    names = {path.name for path in tmp_path.iterdir()}
    trial.save()
    trial.close()
    trial.close()
    assert {path.name for path in tmp_path.iterdir()} == names == {"step-000000012.pt"}


def test_a_state_that_no_checkpoint_can_hold_is_a_failure_in_words(tmp_path: Path) -> None:
    outcome = run_toy(toy_spec("unsavable"), checkpoints=checkpoints_in(tmp_path))
    assert outcome.status is TrialStatus.FAILED
    assert "a checkpoint holds tensors and plain numbers only" in (outcome.status_reason or "")
