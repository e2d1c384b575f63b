"""Trials on a GPU: everything here is skipped where there is none."""

from dataclasses import replace

import pytest
import torch

from tests.toy_entries import Mlp
from tests.trial_building import toy_spec
from trainables.batch_placement import BatchPlacement
from trainables.capability import find_capability, unsupported_reason
from trainables.image_sources import TensorImages
from trainables.loading import TrainingBatches
from trainables.measurements import DivergenceCause
from trainables.outcomes import TrialStatus
from trainables.precision import Switches, restored_switches
from trainables.specs import CompileMode, MeasurementProtocol, Precision
from trainables.timing import DeviceClock, WindowTimer
from trainables.training import Training
from trainables.trial import TrialEnvironment, run_trial

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")]

GPU = TrialEnvironment(device="cuda")


@pytest.mark.parametrize("precision", Precision)
def test_every_precision_runs_natively_or_is_refused(precision: Precision) -> None:
    spec = toy_spec(precision=precision)
    outcome = run_trial(spec, environment=GPU)
    if unsupported_reason(spec.config, find_capability(torch.device("cuda"))):
        assert outcome.status is TrialStatus.UNSUPPORTED
        return
    assert outcome.status is TrialStatus.COMPLETED, outcome.status_reason
    assert outcome.precision is not None
    assert outcome.precision.executed_precision == precision.value
    assert outcome.peak_memory_bytes is not None
    assert outcome.peak_memory_bytes > 0
    assert outcome.device.device == torch.cuda.get_device_name()


@pytest.mark.slow
@pytest.mark.parametrize("mode", [CompileMode.DEFAULT, CompileMode.REDUCE_OVERHEAD])
def test_a_compiled_trial_runs_compiled(mode: CompileMode) -> None:
    outcome = run_trial(toy_spec(compile=mode, protocol={"epochs": 3}), environment=GPU)
    assert outcome.status is TrialStatus.COMPLETED, outcome.status_reason
    assert outcome.compilation is not None
    assert (outcome.compilation.graph_breaks, outcome.compilation.recompilations) == (0, 0)
    assert outcome.compilation.recompilations_while_timed == 0  # CUDA graphs are recorded in the warm-up
    assert not any("compile" in note for note in outcome.notes)


@pytest.mark.slow
def test_a_forced_cold_figure_is_cold_for_triton_too() -> None:
    spec = toy_spec(compile=CompileMode.DEFAULT)
    environments = [GPU, GPU, replace(GPU, cold_compile=True), GPU]
    accounts = [run_trial(spec, environment=environment).compilation for environment in environments]
    assert [account.cache for account in accounts[1:] if account] == ["warm", "cold", "warm"]


@pytest.mark.parametrize("precision", [Precision.FP16, Precision.BF16, Precision.TF32])
def test_tensor_cores_are_named_by_the_cards_capability(precision: Precision) -> None:
    outcome = run_trial(toy_spec(precision=precision), environment=GPU)
    if outcome.status is TrialStatus.UNSUPPORTED:
        return
    assert outcome.precision is not None
    if torch.cuda.get_device_capability() >= (8, 0):
        assert outcome.precision.tensor_cores is True
    assert outcome.precision.emulated is False
    scaled = precision is Precision.FP16
    assert len(outcome.precision.loss_scale_by_epoch) == (2 if scaled else 0)


@pytest.mark.parametrize("model", ["mlp", "out_of_memory_above", "raising", "nan_from_step"])
def test_memory_is_free_again_after_any_end(model: str) -> None:
    run_trial(toy_spec("mlp"), environment=GPU)  # cuBLAS keeps a workspace from its first use on
    before = torch.cuda.memory_allocated()
    run_trial(toy_spec(model, batch_size=64), environment=GPU)
    assert torch.cuda.memory_allocated() == before


@pytest.mark.parametrize("mode", [CompileMode.OFF, pytest.param(CompileMode.REDUCE_OVERHEAD, marks=pytest.mark.slow)])
def test_an_overflow_of_fp16_is_found_again_on_the_gpu_and_leaves_no_memory(mode: CompileMode) -> None:
    run_trial(toy_spec("mlp"), environment=GPU)
    before = torch.cuda.memory_allocated()
    spec = toy_spec(precision=Precision.FP16, compile=mode)
    spec = replace(spec, model="tests.diverging_entries:amplified", model_args={"step": 9})
    outcome = run_trial(spec, environment=GPU)
    assert outcome.divergence is not None, outcome.notes
    assert (outcome.divergence.cause, outcome.divergence.first_nonfinite_step) == (DivergenceCause.PRECISION, 9)
    assert outcome.divergence.first_nonfinite_module == "middle.2"
    assert torch.cuda.memory_allocated() == before


@pytest.mark.parametrize("precision", [Precision.FP32, Precision.FP16])
def test_no_step_of_the_loop_waits_for_the_gpu(precision: Precision) -> None:
    device = torch.device("cuda", torch.cuda.current_device())
    config = toy_spec(precision=precision, gradient_clip_norm=1.0).config
    placement = BatchPlacement(device, channels_last=False)
    images = TensorImages(torch.rand(1600, 1, 8, 8), torch.arange(1600) % 10)
    batches = TrainingBatches(images, config=config, seed=0, pin_memory=placement.pin_memory)
    with restored_switches():
        Switches.of(precision).apply()
        clock = DeviceClock.of(device)
        training = Training(
            Mlp().to(device), config, batches, placement=placement, clock=clock, intervals=1, num_classes=10
        )
        timer = WindowTimer(MeasurementProtocol(epochs=1, window_seconds=1e9), clock)
        training.train_to(5, timer)
        torch.cuda.set_sync_debug_mode("error")
        try:
            training.train_to(90, timer)
        finally:
            torch.cuda.set_sync_debug_mode("default")
        assert len(training.losses.read()) == 90
