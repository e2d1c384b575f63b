"""The two loops that loop_overhead.py compares: the plainest one by hand, and this project's."""

import hashlib
import math
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from trainables.batch_placement import BatchPlacement
from trainables.image_sources import TensorImages
from trainables.loading import TrainingBatches
from trainables.seeding import derived_seed
from trainables.specs import CompileMode, MeasurementProtocol, Precision, TrainingConfig
from trainables.timing import DeviceClock, WindowTimer
from trainables.training import Training

SEED = 0
IMAGES = 8192
CLASSES = 10
LR = 1e-3
WEIGHT_DECAY = 1e-2


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """What a finished training found."""

    steps: int
    train_loss: float
    """Mean of the last epoch's steps."""
    weights: str
    """Hash of all weights."""


Loop = Generator[None, None, Trained]
"""A training that stops after every block of steps, so that others can have their turn."""


class TurnClock:
    """Stands still while others have their turn: else every window would be long enough after two steps."""

    def __init__(self) -> None:
        self._others_seconds = 0.0

    def read(self) -> float:
        return time.perf_counter() - self._others_seconds

    def of_others(self) -> Generator[None, None, None]:
        left = time.perf_counter()
        yield
        self._others_seconds += time.perf_counter() - left


def images_in_memory() -> tuple[Tensor, Tensor]:
    """Random images of MNIST's shape, labelled by a random linear map, so that a loss falls."""
    draws = torch.Generator().manual_seed(SEED)
    images = torch.randn(IMAGES, 1, 28, 28, generator=draws)
    teacher = torch.randn(28 * 28, CLASSES, generator=draws)
    return images, (images.flatten(1) @ teacher).argmax(dim=1)


def small_mlp() -> nn.Module:
    torch.manual_seed(SEED)
    return nn.Sequential(nn.Flatten(), nn.Linear(28 * 28, 128), nn.ReLU(), nn.Linear(128, CLASSES))


def plain_loop(images: Tensor, labels: Tensor, *, batch_size: int, epochs: int, block_steps: int) -> Loop:
    """As somebody would write it: no windows, no divergence check, no checkpoint, no loader, one precision."""
    model = small_mlp()
    optimizer = torch.optim.AdamW(model.parameters(), lr=LR, weight_decay=WEIGHT_DECAY, fused=True)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=epochs)
    steps = len(labels) // batch_size
    losses: list[float] = []
    for epoch in range(epochs):
        order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(derived_seed(SEED, "order", epoch)))
        losses = []
        for step in range(steps):
            chosen = order[step * batch_size : (step + 1) * batch_size]
            optimizer.zero_grad(set_to_none=True)
            loss = cross_entropy(model(images.index_select(0, chosen)), labels.index_select(0, chosen))
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            losses.append(loss.item())
            if step + 1 < steps and (step + 1) % block_steps == 0:
                yield
        schedule.step()
        yield
    return Trained(steps=steps * epochs, train_loss=math.fsum(losses) / len(losses), weights=weights_hash(model))


def project_loop(images: Tensor, labels: Tensor, *, batch_size: int, epochs: int, block_steps: int) -> Loop:
    """The loop of a trial, with its windows, its check for divergence and its reports, once an epoch."""
    config = TrainingConfig(
        precision=Precision.FP32, batch_size=batch_size, compile=CompileMode.OFF, lr=LR, num_workers=0
    )
    placement = BatchPlacement(torch.device("cpu"), channels_last=False)
    batches = TrainingBatches(TensorImages(images, labels), config=config, seed=SEED, pin_memory=placement.pin_memory)
    protocol = MeasurementProtocol(epochs=epochs)
    turns = TurnClock()
    clock = DeviceClock(synchronize=lambda: None, clock=turns.read)
    timer = WindowTimer(protocol, clock)
    model = small_mlp()
    training = Training(model, config, batches, placement=placement, clock=clock, intervals=epochs, num_classes=CLASSES)
    train_loss = math.nan
    timer.resume(uncounted_steps=protocol.warmup_steps)
    for epoch in range(1, epochs + 1):
        epoch_end = epoch * batches.steps_per_epoch
        while training.step + block_steps < epoch_end:
            training.train_to(training.step + block_steps, timer)
            yield from turns.of_others()
        training.train_to(epoch_end, timer)
        timer.pause()
        training.check_losses()
        train_loss = training.end_interval()
        timer.resume()
        yield from turns.of_others()
    batches.close()
    return Trained(steps=training.step, train_loss=train_loss, weights=weights_hash(model))


LOOPS: dict[str, Callable[..., Loop]] = {
    "plain": plain_loop,
    "plain again": plain_loop,
    "project": project_loop,
    "project again": project_loop,
}


def weights_hash(model: nn.Module) -> str:
    parts = [parameter.detach().contiguous().view(torch.uint8).numpy().tobytes() for parameter in model.parameters()]
    return hashlib.sha256(b"".join(parts)).hexdigest()
