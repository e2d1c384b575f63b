"""The account of a trial's precision: skipped steps, the scale over time, and what the device has for it."""

from dataclasses import replace
from typing import Any

import pytest
import torch

from tests.trial_building import ONE_THREAD, checkpoints_in, run_toy, toy_spec
from trainables.capability import Capability, has_matrix_units, is_emulated, nvidia_capability
from trainables.measurements import PrecisionMeasurement
from trainables.outcomes import TrialStatus
from trainables.precision import Switches
from trainables.precision_account import precision_measurement
from trainables.specs import CompileMode, Precision
from trainables.trial import Trial

OLD_CPU = Capability(
    device_type="cpu",
    device="cpu",
    native_bf16=False,
    native_fp16=False,
    native_tf32=False,
    matrix_units=frozenset(),
)


def measured(before: PrecisionMeasurement | None = None, **given: Any) -> PrecisionMeasurement:
    values: dict[str, Any] = {"seen": {torch.float16}, "loss_scale": 1024.0, "skipped_steps": 1}
    return precision_measurement(
        Precision.FP16, OLD_CPU, switches=Switches.of(Precision.FP16), before=before, **(values | given)
    )


def test_the_scale_is_kept_of_every_epoch_and_the_last_one_is_the_final_one() -> None:
    second = measured(measured(), loss_scale=512.0)
    assert second.loss_scale_by_epoch == (1024.0, 512.0)
    assert second.final_loss_scale == 512.0


def test_without_a_scaler_there_is_no_scale() -> None:
    without = measured(measured(loss_scale=None), loss_scale=None, skipped_steps=None)
    assert (without.loss_scale_by_epoch, without.final_loss_scale, without.skipped_steps) == ((), None, None)


@pytest.mark.parametrize(
    ("name", "compute_capability", "emulated"),
    [("Tesla P100", (6, 0), True), ("Tesla V100", (7, 0), True), ("Tesla T4", (7, 5), True), ("A100", (8, 0), False)],
)
def test_only_native_bf16_counts(name: str, compute_capability: tuple[int, int], emulated: bool) -> None:
    """B11: asked in torch's usual way, all of these cards support it."""
    capability = nvidia_capability(name, compute_capability, has_triton=True)
    assert is_emulated(Precision.BF16, capability) is emulated
    assert has_matrix_units(Precision.BF16, capability) is not emulated
    assert has_matrix_units(Precision.FP32, capability) is False


def test_what_is_not_known_of_a_device_is_none() -> None:
    assert has_matrix_units(Precision.BF16, replace(OLD_CPU, matrix_units=None)) is None


def overflowing_trial(steps: list[int], tmp_path: Any, *, interrupted_after: int | None) -> PrecisionMeasurement:
    """12 steps in 2 epochs; a scale that grows after 2000 good steps does not grow within them."""
    spec = toy_spec("overflowing", model_args={"steps": steps}, precision=Precision.FP16, lr=1e-4)
    if interrupted_after is not None:
        with Trial(spec, checkpoints=checkpoints_in(tmp_path), environment=ONE_THREAD) as trial:
            for _ in range(interrupted_after):
                trial.advance()
            trial.save()
    outcome = run_toy(spec, checkpoints=checkpoints_in(tmp_path))
    assert outcome.status is TrialStatus.COMPLETED, outcome.status_reason
    assert outcome.precision is not None
    return outcome.precision


def test_every_skipped_step_halves_the_scale_of_its_epoch(tmp_path: Any) -> None:
    found = overflowing_trial([2, 3, 9], tmp_path, interrupted_after=None)
    assert found.skipped_steps == 3
    assert found.loss_scale_by_epoch == (2.0**14, 2.0**13)
    assert found.final_loss_scale == 2.0**13
    assert found.executed_precision == "fp16"


def test_the_scale_over_time_and_the_skipped_steps_survive_an_interruption(tmp_path: Any) -> None:
    """In the second process the model counts its forward passes from 1 again, so two more overflow."""
    found = overflowing_trial([2, 3], tmp_path, interrupted_after=1)
    assert found.skipped_steps == 4
    assert found.loss_scale_by_epoch == (2.0**14, 2.0**12)


def test_what_a_training_step_computes_in_counts_not_what_its_evaluation_does() -> None:
    outcome = run_toy(toy_spec("stubborn_in_training", precision=Precision.BF16))
    assert outcome.precision is not None
    assert outcome.precision.executed_precision == "fp32"


@pytest.mark.slow
def test_a_compiled_training_shows_its_precision_in_its_own_output(tmp_path: Any) -> None:
    outcome = run_toy(toy_spec(precision=Precision.BF16, compile=CompileMode.DEFAULT, protocol={"epochs": 1}))
    assert outcome.precision is not None
    assert outcome.precision.executed_precision == "bf16"
    assert outcome.compilation is not None
    assert outcome.compilation.recompilations == 0
