"""The optimizer, its schedule and one training step, none of which waits for the device."""

from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.optim.lr_scheduler import CosineAnnealingLR

from trainables.precision import autocast_for, build_scaler
from trainables.specs import Optimizer, TrainingConfig

FUSED_DEVICES = ("cpu", "cuda", "xpu", "mps")
"""Device types with fused optimizers. They skip a step on the device, where others read the GradScaler's flag first."""
SGD_MOMENTUM = 0.9

Forward = Callable[[Tensor], Tensor]


def build_optimizer(
    parameters: Iterable[nn.Parameter], config: TrainingConfig, device: torch.device
) -> torch.optim.Optimizer:
    fused = device.type in FUSED_DEVICES
    if config.optimizer is Optimizer.SGD:
        return torch.optim.SGD(
            parameters,
            lr=config.lr,
            momentum=SGD_MOMENTUM,
            nesterov=True,
            weight_decay=config.weight_decay,
            fused=fused,
        )
    return torch.optim.AdamW(parameters, lr=config.lr, weight_decay=config.weight_decay, fused=fused)


class Optimization:
    """All that a step changes besides the model: optimizer, schedule, scaler and the count of skipped steps."""

    def __init__(self, model: nn.Module, config: TrainingConfig, *, device: torch.device, intervals: int) -> None:
        """`intervals` is the length of the cosine schedule, which moves once an interval."""
        self.optimizer = build_optimizer(model.parameters(), config, device)
        self.schedule = CosineAnnealingLR(self.optimizer, T_max=intervals)
        self.scaler = build_scaler(config.precision, device)
        self.autocast = autocast_for(config.precision, device)
        self.skipped_steps = torch.zeros((), dtype=torch.float64, device=device)
        """A sum on the device of the scaler's own flags: every skipped step is in it, none inferred from the scale."""
        self._parameters = list(model.parameters())
        self._clip_norm = config.gradient_clip_norm
        if self.scaler is not None:
            self.optimizer.register_step_pre_hook(self._count_skipped)

    def step(self, forward: Forward, images: Tensor, labels: Tensor) -> Tensor:
        """Returns the loss of the batch before the step: a scalar on the device, without a graph."""
        loss = self.find_gradients(forward, images, labels)
        self.move_weights()
        return loss

    def find_gradients(self, forward: Forward, images: Tensor, labels: Tensor) -> Tensor:
        """The first half of a step: the loss, and gradients that a scaler has multiplied by its scale."""
        self.optimizer.zero_grad(set_to_none=True)
        if self.autocast is None:
            loss = cross_entropy(forward(images), labels)
        else:
            with self.autocast:
                loss = cross_entropy(forward(images), labels)
        scaled = loss if self.scaler is None else self.scaler.scale(loss)
        scaled.backward()  # type: ignore[no-untyped-call] # torch has no type of it
        return loss.detach()

    def move_weights(self) -> None:
        """The second half of a step: gradients clipped, weights moved, unless a scaler finds an overflow."""
        scaler = self.scaler
        if self._clip_norm is not None:
            if scaler is not None:
                scaler.unscale_(self.optimizer)  # the norm to clip is that of the true gradient
            nn.utils.clip_grad_norm_(self._parameters, self._clip_norm)
        if scaler is None:
            self.optimizer.step()
        else:
            scaler.step(self.optimizer)
            scaler.update()

    def _count_skipped(self, optimizer: torch.optim.Optimizer, _args: object, _kwargs: object) -> None:
        """The scaler leaves its flag, 0 or 1, on a fused optimizer for the time of the step."""
        self.skipped_steps += optimizer.found_inf  # type: ignore[attr-defined] # set by GradScaler.step


class StepLosses:
    """The losses of an interval's steps, kept on the device until they are read at a report."""

    def __init__(self, earlier: Tensor | None = None) -> None:
        """`earlier` are the losses of the interval's steps before an interruption."""
        self._stacked = [] if earlier is None or not len(earlier) else [earlier]
        self._pending: list[Tensor] = []

    def add(self, loss: Tensor) -> None:
        self._pending.append(loss)
        if len(self._pending) == _STACKED_AT:
            self._stack()

    def read(self) -> Tensor:
        """All losses of the interval so far, on the host. Waits for the device."""
        self._stack()
        if not self._stacked:
            return torch.empty(0)
        self._stacked = [torch.cat([losses.cpu() for losses in self._stacked])]
        return self._stacked[0]

    def _stack(self) -> None:
        """Hundreds of scalars would each hold a block of the device's allocator."""
        if self._pending:
            self._stacked.append(torch.stack(self._pending).float())
            self._pending = []


_STACKED_AT = 256
