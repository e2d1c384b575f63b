"""One step: clipping, scaling, skipping, and the schedule beside it."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.toy_entries import Overflowing
from trainables.optimization import Optimization, StepLosses, build_optimizer
from trainables.specs import CompileMode, Optimizer, Precision, TrainingConfig

CPU = torch.device("cpu")


def config(**knobs: Any) -> TrainingConfig:
    asked: dict[str, Any] = {
        "precision": Precision.FP32,
        "batch_size": 8,
        "compile": CompileMode.OFF,
        "lr": 1.0,
        "num_workers": 0,
    }
    return TrainingConfig(**(asked | knobs))


def batch() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    return torch.rand(8, 1, 8, 8, generator=generator), torch.arange(8)


def overflowing(steps: list[int]) -> nn.Module:
    torch.manual_seed(0)
    return Overflowing(steps).train()


def test_a_skipped_step_changes_no_weight_and_every_one_is_counted() -> None:
    model = overflowing([1, 4, 5])
    optimization = Optimization(model, config(precision=Precision.FP16, lr=1e-3), device=CPU, intervals=10)
    moved = []
    for _ in range(6):
        before = [parameter.detach().clone() for parameter in model.parameters()]
        loss = optimization.step(model, *batch())
        assert math.isfinite(loss)
        moved.append(any(not torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True)))
    assert moved == [False, True, True, False, False, True]
    assert optimization.skipped_steps.item() == 3


def test_skipped_steps_are_counted_where_the_scale_grows_in_between() -> None:
    """The scale alone does not tell: it ends at twice what it was, with two steps skipped."""
    model = overflowing([2, 5])
    optimization = Optimization(model, config(precision=Precision.FP16, lr=1e-3), device=CPU, intervals=1)
    assert optimization.scaler is not None
    optimization.scaler.set_growth_interval(1)
    before = optimization.scaler.get_scale()
    scales = []
    for _ in range(5):
        optimization.step(model, *batch())
        scales.append(optimization.scaler.get_scale() / before)
    assert scales == [2.0, 1.0, 2.0, 4.0, 2.0]
    assert optimization.skipped_steps.item() == 2


def test_the_schedule_moves_once_an_interval_whatever_was_skipped() -> None:
    """B07: with a schedule that moves per step, the learning rate ran ahead of the weights."""
    model = overflowing([1, 2, 3])
    optimization = Optimization(model, config(precision=Precision.FP16), device=CPU, intervals=20)
    rates = []
    for _ in range(3):
        optimization.step(model, *batch())
        rates.append(optimization.optimizer.param_groups[0]["lr"])
    assert rates == [1.0, 1.0, 1.0]
    optimization.schedule.step()
    assert optimization.optimizer.param_groups[0]["lr"] == pytest.approx((1 + math.cos(math.pi / 20)) / 2)


@pytest.mark.parametrize("optimizer", Optimizer)
def test_skipping_never_asks_the_host(optimizer: Optimizer) -> None:
    """GradScaler reads its flag on the host unless the optimizer is fused."""
    model = overflowing([1])
    optimization = Optimization(
        model, config(precision=Precision.FP16, optimizer=optimizer, lr=1e-3), device=CPU, intervals=1
    )
    reads = 0
    item = Tensor.item

    def counted(tensor: Tensor) -> Any:
        nonlocal reads
        reads += 1
        return item(tensor)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Tensor, "item", counted)
        optimization.step(model, *batch())
        optimization.step(model, *batch())
    assert reads == 0
    assert optimization.skipped_steps.item() == 1


@pytest.mark.parametrize("precision", [Precision.FP32, Precision.FP16])
def test_clipping_sees_the_true_gradient(precision: Precision) -> None:
    """B09: clipped while it was still scaled by 65,536, the update would be 65,536 times too short."""
    model = nn.Linear(4, 3, bias=False)
    nn.init.zeros_(model.weight)
    knobs = config(precision=precision, optimizer=Optimizer.SGD, weight_decay=0.0, gradient_clip_norm=0.25)
    optimization = Optimization(model, knobs, device=CPU, intervals=1)
    optimization.optimizer.param_groups[0]["momentum"] = 0.0
    optimization.optimizer.param_groups[0]["nesterov"] = False
    optimization.step(model, 4 * torch.eye(4)[:3], torch.tensor([0, 1, 2]))
    assert model.weight.norm().item() == pytest.approx(0.25, rel=1e-3)


def test_a_gradient_below_the_limit_is_not_touched() -> None:
    weights = []
    for limit in (None, 1e9):
        torch.manual_seed(0)
        model = nn.Linear(4, 3)
        optimization = Optimization(model, config(lr=0.1, gradient_clip_norm=limit), device=CPU, intervals=1)
        optimization.step(model, torch.eye(4)[:3], torch.tensor([0, 1, 2]))
        weights.append(model.weight.detach().clone())
    assert torch.equal(*weights)


def test_the_knobs_reach_the_optimizer() -> None:
    parameters = [nn.Parameter(torch.zeros(1))]
    adamw = build_optimizer(parameters, config(lr=0.5, weight_decay=0.25), CPU).param_groups[0]
    assert (adamw["lr"], adamw["weight_decay"], adamw["fused"]) == (0.5, 0.25, True)
    sgd = build_optimizer(parameters, config(optimizer=Optimizer.SGD), CPU).param_groups[0]
    assert (sgd["momentum"], sgd["nesterov"], sgd["fused"]) == (0.9, True, True)


def test_a_device_without_fused_optimizers_gets_plain_ones() -> None:
    parameters = [nn.Parameter(torch.zeros(1, device="meta"))]
    assert build_optimizer(parameters, config(), torch.device("meta")).param_groups[0]["fused"] is False


def test_losses_are_kept_in_their_order_however_many_there_are() -> None:
    losses = StepLosses()
    for value in range(600):
        losses.add(torch.tensor(float(value)))
        if value in (3, 300):
            assert losses.read().tolist() == [float(earlier) for earlier in range(value + 1)]
    assert losses.read().tolist() == [float(value) for value in range(600)]


def test_losses_go_on_from_those_of_a_checkpoint() -> None:
    losses = StepLosses(torch.tensor([1.0, 2.0]))
    losses.add(torch.tensor(3.0, dtype=torch.float64))
    assert losses.read().tolist() == [1.0, 2.0, 3.0]
    assert StepLosses(torch.empty(0)).read().tolist() == []


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("precision", [Precision.FP32, Precision.FP16, Precision.BF16])
@pytest.mark.parametrize("clip", [None, 1.0])
def test_no_step_waits_for_the_gpu(precision: Precision, clip: float | None) -> None:
    device = torch.device("cuda")
    model = overflowing([2]).to(device)
    optimization = Optimization(
        model, config(precision=precision, lr=1e-3, gradient_clip_norm=clip), device=device, intervals=1
    )
    images, labels = (tensor.to(device) for tensor in batch())
    optimization.step(model, images, labels)
    torch.cuda.synchronize()
    losses = StepLosses()
    torch.cuda.set_sync_debug_mode("error")
    try:
        for _ in range(300):
            losses.add(optimization.step(model, images, labels))
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert len(losses.read()) == 300
