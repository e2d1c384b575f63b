"""Evaluation: the uncompiled module over every validation sample, in the trial's own precision."""

from collections.abc import Iterable
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from trainables.batch_placement import BatchPlacement
from trainables.precision import DtypeProbe


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    accuracy: float
    """Fraction, 0 to 1."""
    loss: float
    """Mean cross-entropy, in nats; may be NaN or infinite."""
    images: int


@torch.no_grad()
def evaluate(
    model: nn.Module,
    batches: Iterable[tuple[Tensor, Tensor]],
    placement: BatchPlacement,
    *,
    autocast: torch.autocast | None,
    probe: DtypeProbe | None = None,
) -> Evaluation:
    """Leaves the model in training mode, whatever happens. `probe` watches the first batch.

    The sums stay on the device; it is waited for once, at the end.
    """
    images_seen = 0
    correct = torch.zeros((), dtype=torch.int64, device=placement.device)
    loss_sum = torch.zeros((), dtype=torch.float64, device=placement.device)
    model.eval()
    try:
        for host_images, host_labels in batches:
            images, labels = placement(host_images, host_labels)
            with ExitStack() as around:
                if probe is not None:
                    around.enter_context(probe.watching(model))
                    probe = None
                around.enter_context(autocast or nullcontext())
                logits = model(images)
            correct += (logits.argmax(dim=1) == labels).sum()
            loss_sum += cross_entropy(logits.float(), labels, reduction="sum")
            images_seen += len(labels)
    finally:
        model.train()
    return Evaluation(accuracy=correct.item() / images_seen, loss=loss_sum.item() / images_seen, images=images_seen)


@torch.no_grad()
def has_finite_weights(model: nn.Module) -> bool:
    """Waits for the device once. Buffers are not asked: an attention mask holds infinities on purpose."""
    finite = [torch.isfinite(parameter).all() for parameter in model.parameters()]
    return bool(torch.stack(finite).all()) if finite else True
