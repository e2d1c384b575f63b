"""Evaluation: every sample once, in the trial's precision, without a trace."""

import pytest
import torch
from torch import Tensor, nn

from trainables.batch_placement import BatchPlacement
from trainables.evaluation import evaluate, has_finite_weights
from trainables.precision import DtypeProbe

PLACEMENT = BatchPlacement(torch.device("cpu"), channels_last=False)


class FirstPixels(nn.Module):
    """Its logits are the first pixels of the image, so a test writes them down."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, images: Tensor) -> Tensor:
        return images.flatten(1)[:, :3] * self.scale


def batches(sizes: list[int], *, right: int) -> list[tuple[Tensor, Tensor]]:
    """Images that the model sees as class 0; the first `right` labels say so, the others say 1."""
    images = torch.zeros(sum(sizes), 1, 2, 2)
    images[:, 0, 0, 0] = 5.0
    labels = (torch.arange(sum(sizes)) >= right).long()
    return list(zip(images.split(sizes), labels.split(sizes), strict=True))


@pytest.mark.parametrize("sizes", [[10], [4, 4, 2], [9, 1]])
def test_every_sample_counts_once_also_of_a_short_last_batch(sizes: list[int]) -> None:
    evaluation = evaluate(FirstPixels(), batches(sizes, right=7), PLACEMENT, autocast=None)
    logits = torch.tensor([5.0, 0.0, 0.0])
    losses = -torch.log_softmax(logits, 0)
    assert evaluation.images == 10
    assert evaluation.accuracy == 0.7
    assert evaluation.loss == pytest.approx((0.7 * losses[0] + 0.3 * losses[1]).item(), rel=1e-6)


def test_the_model_is_evaluated_in_evaluation_mode_and_left_in_training_mode() -> None:
    model = nn.Sequential(nn.Dropout(1.0), FirstPixels())
    assert evaluate(model, batches([4], right=4), PLACEMENT, autocast=None).accuracy == 1.0
    assert all(module.training for module in model.modules())


def test_the_model_is_left_in_training_mode_by_an_exception_too() -> None:
    model = nn.Sequential(nn.Linear(99, 3))
    with pytest.raises(RuntimeError):
        evaluate(model, batches([4], right=4), PLACEMENT, autocast=None)
    assert model.training


def test_it_runs_in_the_precision_of_the_trial_and_sums_in_float32() -> None:
    model = nn.Sequential(nn.Flatten(), nn.Linear(4, 3))
    probe = DtypeProbe()
    autocast = torch.autocast("cpu", dtype=torch.bfloat16)
    evaluation = evaluate(model, batches([4, 4], right=4), PLACEMENT, autocast=autocast, probe=probe)
    assert torch.bfloat16 in probe.seen
    assert evaluation.loss > 0


def test_it_keeps_no_gradient() -> None:
    model = FirstPixels()
    evaluate(model, batches([4], right=4), PLACEMENT, autocast=None)
    assert model.scale.grad is None


def test_weights_that_are_not_finite_are_found_and_buffers_are_not_asked() -> None:
    model = nn.Linear(2, 2)
    model.register_buffer("mask", torch.tensor(float("-inf")))
    assert has_finite_weights(model)
    with torch.no_grad():
        model.weight[0, 1] = float("nan")
    assert not has_finite_weights(model)


def test_bytes_become_floats_from_0_to_1() -> None:
    images, labels = PLACEMENT(torch.tensor([[[[0, 51, 255]]]], dtype=torch.uint8), torch.tensor([1]))
    assert images.dtype is torch.float32
    assert images.flatten().tolist() == pytest.approx([0.0, 0.2, 1.0])
    assert labels.tolist() == [1]


def test_floats_of_another_width_become_float32() -> None:
    images, _ = PLACEMENT(torch.tensor([[[[2.0]]]], dtype=torch.float64), torch.tensor([1]))
    assert (images.dtype, images.item()) == (torch.float32, 2.0)


def test_images_that_are_as_a_cpu_wants_them_are_not_copied() -> None:
    given = torch.zeros(2, 3, 4, 4)
    assert PLACEMENT(given, torch.tensor([0, 1]))[0] is given


def test_channels_last_is_the_layout_of_the_images() -> None:
    placement = BatchPlacement(torch.device("cpu"), channels_last=True)
    images, _ = placement(torch.zeros(2, 3, 4, 4), torch.tensor([0, 1]))
    assert images.is_contiguous(memory_format=torch.channels_last)


def test_pinned_memory_and_copies_that_nobody_waits_for_come_together() -> None:
    assert BatchPlacement(torch.device("cuda"), channels_last=False).pin_memory
    assert not PLACEMENT.pin_memory
