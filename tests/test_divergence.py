"""A trial that became non-finite is replayed, and says where it broke and whether fp32 would have."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.diverging_entries import BuiltSoOften, NanOnce
from tests.trial_building import ONE_THREAD, checkpoints_in, run_toy, toy_spec
from trainables.measurements import DivergenceCause, DivergenceDiagnosis, NonFiniteIn
from trainables.outcomes import TrialOutcome, TrialStatus, outcome_from_json, outcome_to_json
from trainables.specs import CompileMode, Optimizer, Precision, TrialSpec
from trainables.trial import Trial, run_trial

AT_EVERY_REPORT = replace(ONE_THREAD, checkpoint_every_seconds=0.0)


def diverging(
    model: str, *, dataset: str = "stripes", dataset_args: dict[str, Any] | None = None, **given: Any
) -> TrialSpec:
    spec = toy_spec(**given)
    entries = "tests.diverging_entries"
    return replace(spec, model=f"{entries}:{model}", dataset=f"{entries}:{dataset}", dataset_args=dataset_args or {})


def diagnosed(outcome: TrialOutcome) -> DivergenceDiagnosis:
    assert outcome.status is TrialStatus.DIVERGED
    assert outcome.divergence is not None, outcome.notes
    assert outcome_from_json(outcome_to_json(outcome)) == outcome
    return outcome.divergence


@pytest.mark.parametrize("workers", [{}, {"num_workers": 2}, {"num_workers": 2, "persistent_workers": False}])
def test_an_overflow_of_fp16_alone_is_blamed_on_the_precision_with_step_and_module(workers: dict[str, Any]) -> None:
    outcome = run_toy(diverging("amplified", model_args={"step": 9}, precision=Precision.FP16, **workers))
    found = diagnosed(outcome)
    assert (found.cause, found.first_nonfinite_step, found.first_nonfinite_module, found.nonfinite_in) == (
        DivergenceCause.PRECISION,
        9,
        "middle.2",
        NonFiniteIn.FORWARD,
    )
    assert (found.fp32_survives, found.fp32_nonfinite_step, found.replayed_from_step) == (True, None, 0)
    assert found.replay_seconds > 0
    assert outcome.status_reason == (
        "loss became NaN at step 9: first not finite in the output of middle.2 at step 9 in fp16; "
        "the same steps stay finite in fp32"
    )


@pytest.mark.parametrize(("precision", "clause"), [(Precision.FP16, "; in fp32 at step 9"), (Precision.FP32, "")])
def test_what_fp32_does_not_survive_is_blamed_on_the_training(precision: Precision, clause: str) -> None:
    outcome = run_toy(toy_spec("nan_from_step", model_args={"step": 9}, precision=precision))
    found = diagnosed(outcome)
    assert (found.cause, found.first_nonfinite_step, found.first_nonfinite_module) == (
        DivergenceCause.TRAINING,
        9,
        "model",
    )
    assert (found.fp32_survives, found.fp32_nonfinite_step, found.fp32_nonfinite_module) == (False, 9, "model")
    assert outcome.status_reason == (
        "loss became NaN at step 9: first not finite in the output of the model itself at step 9 "
        f"in {precision}{clause}"
    )


@pytest.mark.parametrize("num_workers", [0, 2])
def test_a_batch_that_is_not_finite_is_blamed_on_the_data_with_the_image(num_workers: int) -> None:
    spec = diverging("amplified", dataset="nan_image", dataset_args={"index": 7}, model_args={"step": 99})
    spec = replace(spec, config=replace(spec.config, num_workers=num_workers, precision=Precision.BF16))
    found = diagnosed(run_toy(spec))
    assert (found.cause, found.nonfinite_in, found.nonfinite_images) == (
        DivergenceCause.DATA,
        NonFiniteIn.INPUT,
        (7,),
    )
    assert (found.first_nonfinite_module, found.fp32_survives) == (None, None)


def test_an_lr_that_is_far_too_high_is_blamed_on_the_training_with_the_gradient_before() -> None:
    found = diagnosed(run_toy(toy_spec(lr=1e12, optimizer=Optimizer.SGD)))
    assert (found.cause, found.nonfinite_in) == (DivergenceCause.TRAINING, NonFiniteIn.FORWARD)
    assert found.gradient_norm_before is not None
    assert found.gradient_norm_before > 1e3


def test_weights_that_an_update_breaks_are_named() -> None:
    outcome = run_toy(toy_spec("hidden_nan_weight"))
    found = diagnosed(outcome)
    assert (found.nonfinite_in, found.first_nonfinite_module, found.first_nonfinite_step) == (
        NonFiniteIn.WEIGHTS,
        "unused",
        1,
    )
    assert outcome.status_reason == (
        "weights became NaN or infinite by step 6: first not finite in the new weights unused at step 1 in fp32"
    )


def test_the_gradient_that_was_broken_first_is_the_one_nearest_to_the_loss() -> None:
    found = diagnosed(run_toy(diverging("nan_gradient", model_args={"step": 4})))
    assert (found.nonfinite_in, found.first_nonfinite_step) == (NonFiniteIn.GRADIENT, 4)
    assert (found.first_nonfinite_module or "").startswith("first.")


def test_a_scale_that_collapsed_is_blamed_on_the_scaler() -> None:
    """B07: 170 overflows in a row halve the scale to 0, and unscaling divides by it."""
    spec = diverging(
        "half_gradient_overflow", model_args={"steps": 170}, precision=Precision.FP16, protocol={"epochs": 30}
    )
    found = diagnosed(run_toy(spec))
    assert (found.cause, found.first_nonfinite_step, found.nonfinite_in, found.fp32_survives) == (
        DivergenceCause.LOSS_SCALE,
        171,
        NonFiniteIn.WEIGHTS,
        True,
    )


def test_the_gradient_norm_is_the_true_one_of_fp16_with_clipping_too() -> None:
    """B09: neither scaled nor clipped."""
    args: dict[str, Any] = {"model_args": {"step": 4}, "gradient_clip_norm": 1e-3}
    half = diagnosed(run_toy(diverging("amplified", precision=Precision.FP16, **args)))
    single = diagnosed(run_toy(toy_spec("nan_from_step", **args)))
    assert half.gradient_norm_before == pytest.approx(single.gradient_norm_before, rel=0.02)
    assert half.gradient_norm_before > 0.05


def test_an_evaluation_that_is_not_finite_is_replayed_too() -> None:
    outcome = run_toy(toy_spec("nan_in_evaluation"))
    found = diagnosed(outcome)
    assert (found.cause, found.in_evaluation, found.first_nonfinite_step) == (DivergenceCause.TRAINING, True, 6)
    assert outcome.status_reason == (
        "validation loss became NaN by step 6: "
        "first not finite in the output of the model itself in the evaluation after step 6 in fp32"
    )


def test_a_validation_image_that_is_not_finite_is_named() -> None:
    outcome = run_toy(
        diverging("amplified", dataset="nan_validation_image", dataset_args={"index": 33}, model_args={"step": 99})
    )
    assert diagnosed(outcome).cause is DivergenceCause.DATA
    assert (outcome.status_reason or "").endswith(
        "first not finite in the batch (validation images 33) in the evaluation after step 6"
    )


def test_what_a_replay_does_not_show_again_is_said_not_to_be_reproduced() -> None:
    NanOnce.built = 0
    outcome = run_toy(diverging("nan_once"))
    assert diagnosed(outcome).cause is DivergenceCause.NOT_REPRODUCED
    assert outcome.status_reason == "loss became NaN at step 5: replayed from step 0, the same steps stay finite"


@pytest.mark.slow
def test_what_breaks_only_when_compiled_is_blamed_on_compile() -> None:
    outcome = run_toy(diverging("nan_when_compiled", compile=CompileMode.DEFAULT))
    found = diagnosed(outcome)
    assert (found.cause, found.fp32_survives) == (DivergenceCause.COMPILE, True)
    assert outcome.status_reason == (
        "loss became NaN at step 1: replayed from step 0, the same steps stay finite without torch.compile"
    )


def test_a_replay_starts_from_the_newest_checkpoint_within_an_epoch(tmp_path: Path) -> None:
    """Steps keep counting from the training's start, also where it was continued by another process."""
    spec = diverging(
        "amplified",
        model_args={"step": 11},
        precision=Precision.FP16,
        protocol={"epochs": 3, "report_every_steps": 2},
    )
    with Trial(spec, checkpoints=checkpoints_in(tmp_path), environment=ONE_THREAD) as trial:
        for _ in range(4):
            trial.advance()
        trial.save()
    found = diagnosed(run_toy(spec, checkpoints=checkpoints_in(tmp_path)))
    assert (found.replayed_from_step, found.first_nonfinite_step, found.cause) == (8, 11, DivergenceCause.PRECISION)
    assert found.gradient_norm_before is not None


def test_a_replay_from_a_checkpoint_finds_what_one_from_the_start_finds(tmp_path: Path) -> None:
    """To the last bit of the gradient's norm, with random augmentation and dropout."""
    spec = diverging(
        "amplified",
        dataset="noisy_stripes",
        model_args={"step": 11, "dropout": 0.3},
        protocol={"epochs": 3, "report_every_steps": 5},
        precision=Precision.FP16,
    )
    whole = diagnosed(run_toy(spec))
    kept = diagnosed(run_trial(spec, checkpoints=checkpoints_in(tmp_path), environment=AT_EVERY_REPORT))
    assert (whole.replayed_from_step, kept.replayed_from_step) == (0, 6)
    assert replace(kept, replayed_from_step=0, replay_seconds=0.0) == replace(whole, replay_seconds=0.0)


def test_a_checkpoint_whose_weights_are_not_finite_is_no_good_state(tmp_path: Path) -> None:
    spec = toy_spec(lr=1e39, protocol={"report_every_steps": 1})
    found = diagnosed(run_trial(spec, checkpoints=checkpoints_in(tmp_path), environment=AT_EVERY_REPORT))
    assert next(checkpoints_in(tmp_path).newest_first(spec.trial_id, 0)).step == 1
    assert (found.replayed_from_step, found.first_nonfinite_step, found.nonfinite_in) == (0, 1, NonFiniteIn.WEIGHTS)


def test_no_two_models_are_in_memory_at_once() -> None:
    assert diagnosed(run_toy(diverging("solitary", precision=Precision.FP16))).cause is DivergenceCause.PRECISION


def test_a_replay_that_fails_is_a_note_and_the_trial_has_diverged_all_the_same() -> None:
    BuiltSoOften.left = 1
    outcome = run_toy(diverging("built_so_often", precision=Precision.FP16))
    assert (outcome.status, outcome.status_reason) == (TrialStatus.DIVERGED, "loss became NaN at step 5")
    assert outcome.divergence is None
    assert outcome.notes[-1] == (
        "why it diverged is not known, its replay ended early: out of memory at batch 16: "
        "CUDA out of memory. Tried to allocate 20.00 GiB"
    )


def test_what_was_found_stands_where_only_the_replay_in_fp32_fails() -> None:
    BuiltSoOften.left = 2
    outcome = run_toy(diverging("built_so_often", precision=Precision.FP16))
    found = diagnosed(outcome)
    assert (found.cause, found.first_nonfinite_step, found.fp32_survives) == (DivergenceCause.UNDECIDED, 5, None)
    assert outcome.notes[-1].startswith("its replay in fp32 ended early: out of memory")


def test_a_part_that_a_user_compiled_is_seen_into() -> None:
    found = diagnosed(run_toy(toy_spec("partly_compiled", lr=1e20)))
    assert (found.nonfinite_in, found.first_nonfinite_step, found.first_nonfinite_module) == (
        NonFiniteIn.FORWARD,
        2,
        "second",
    )


def test_a_mask_that_is_infinite_in_every_step_is_not_taken_for_the_break() -> None:
    found = diagnosed(run_toy(diverging("masked", dataset="nine_classes")))
    assert (found.first_nonfinite_step, found.first_nonfinite_module) == (5, "last")
