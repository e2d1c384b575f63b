"""The training loop: batches in, steps taken, nothing waited for until a report is due."""

import math
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import partial
from itertools import count, islice
from typing import Any

import torch
from torch import Tensor, nn

from trainables.bad_ends import DivergedError
from trainables.batch_placement import BatchPlacement
from trainables.checkpoints import Checkpoint
from trainables.compilation import CompilerWork, compile_model
from trainables.compile_account import cache_state
from trainables.errors import InputError
from trainables.loading import TrainingBatches
from trainables.optimization import Optimization, StepLosses
from trainables.precision import DtypeProbe
from trainables.specs import CompileMode, TrainingConfig
from trainables.timing import DeviceClock, WindowTimer


class Training:
    """A model in training, and where it is: the interval, and the epoch and batch that its next step takes."""

    def __init__(
        self,
        model: nn.Module,
        config: TrainingConfig,
        batches: TrainingBatches,
        *,
        placement: BatchPlacement,
        clock: DeviceClock,
        intervals: int,
        num_classes: int,
    ) -> None:
        """`model` is on its device already. `intervals` is the length of the schedule."""
        self.model = model
        self.optimization = Optimization(model, config, device=placement.device, intervals=intervals)
        self.interval = 0
        self.epoch = 0
        self.batch = 0
        self.step = 0
        self.losses = StepLosses()
        self.last_batch: tuple[Tensor, Tensor] | None = None
        """As the last step of `train_to` took it, on the device; None before."""
        self.first_step_seconds: float | None = None
        """Of a compiled model in this process: the step that compiles."""
        self.first_step_cache: str | None = None
        """Whether the compiler's cache had what that step needed: `cold` or `warm`."""
        self.compiler_work = CompilerWork()
        self.dtypes = DtypeProbe()
        """What the first step computed in; of a compiled model the logits alone, since hooks would be compiled too."""
        self._batches = batches
        self._stream: Iterator[tuple[Tensor, Tensor]] | None = None
        self._placement = placement
        self._frees_batches = placement.device.type != "cpu"
        """Before the next batch is made: an accelerator's memory is dear. On a CPU two buffers in turn are faster."""
        self._clock = clock
        self._num_classes = num_classes
        self._is_compiled = config.compile is not CompileMode.OFF
        self._forward = compile_model(model, config.compile)
        if self._is_compiled:
            self.compiler_work.watch()
        self._take_step: Callable[[Tensor, Tensor], Tensor] = self._take_first_step

    def train_to(self, step: int, timer: WindowTimer) -> None:
        """Takes steps until `step` of them are done in all. The host runs ahead of the device."""
        self.last_batch = None
        left = step - self.step
        while self.step < step:
            due = min(step - self.step, self._batches.steps_per_epoch - self.batch)
            for images, labels in islice(self._batches_from_here(), due):
                placed = self._placement(images, labels)
                self.losses.add(self._take_step(*placed))
                timer.count(self._batches.batch_size)
                left -= 1
                if not left:
                    self.last_batch = placed
                if self._frees_batches:
                    del images, labels, placed
            self._move_on(due)

    def take_uncounted_step(self, images: Tensor, labels: Tensor) -> None:
        """For measuring alone: the training is where it was, but its weights and its optimizer are not."""
        self._take_step(images, labels)

    def check_losses(self) -> None:
        """Waits for the device. Raises `DivergedError` naming the first step whose loss is not finite."""
        losses = self.losses.read()
        broken = (~torch.isfinite(losses)).nonzero()
        if len(broken):
            first = int(broken[0])
            became = "NaN" if losses[first].isnan() else "infinite"
            raise DivergedError(f"loss became {became} at step {self.step - len(losses) + first + 1}")

    def end_interval(self) -> float:
        """Moves the schedule, once whatever was skipped. Returns the mean loss of the interval's steps."""
        losses = self.losses.read().tolist()
        self.losses = StepLosses()
        self.optimization.schedule.step()
        self.interval += 1
        return math.fsum(losses) / len(losses)

    def measure(self, timer: WindowTimer, *, windows: int, seconds: float) -> None:
        """Takes further steps, only to time them, until there are `windows` windows, or `seconds` are over.

        `timer` runs; the seconds begin after its warm-up.
        """
        over: float | None = None
        for epoch in count(self.epoch + 1):
            for images, labels in self._batches.epoch(epoch):
                self._take_step(*self._placement(images, labels))
                timer.count(self._batches.batch_size)
                if over is None or timer.is_warming_up:
                    over = self._clock.glance() + seconds
                elif len(timer.window_images) >= windows or self._clock.glance() > over:
                    return

    def state(self) -> dict[str, Any]:
        """The part of a checkpoint that is the training's own."""
        optimization = self.optimization
        return {
            "model": {plain_name(name): value for name, value in self.model.state_dict().items()},
            "optimizer": optimization.optimizer.state_dict(),
            "schedule": optimization.schedule.state_dict(),
            "scaler": None if optimization.scaler is None else optimization.scaler.state_dict(),
            "skipped_steps": self.skipped_steps,
            "interval": self.interval,
            "epoch": self.epoch,
            "batch": self.batch,
            "step": self.step,
            "losses": self.losses.read(),
        }

    def restore(self, checkpoint: Checkpoint) -> None:
        optimization = self.optimization
        own_names = {plain_name(name): name for name in self.model.state_dict()}
        self.model.load_state_dict({own_names.get(name, name): value for name, value in checkpoint.model.items()})
        optimization.optimizer.load_state_dict(checkpoint.optimizer)
        optimization.schedule.load_state_dict(checkpoint.schedule)
        if optimization.scaler is not None and checkpoint.scaler is not None:
            optimization.scaler.load_state_dict(checkpoint.scaler)
        optimization.skipped_steps.fill_(checkpoint.skipped_steps or 0)
        self.interval = checkpoint.interval
        self.epoch = checkpoint.epoch
        self.batch = checkpoint.batch
        self.step = checkpoint.step
        self.losses = StepLosses(checkpoint.losses)

    def take_steps_by(self, take_step: Callable[[Tensor, Tensor], Tensor]) -> None:
        """`take_step` takes all further steps: from a batch on the device to its loss."""
        self._take_step = take_step

    def release(self) -> None:
        """Lets go of the model and all that belongs to it: no further step can be taken."""
        self.optimization.optimizer.state.clear()  # whatever frame of an exception still holds the optimizer
        del self.model, self.optimization, self.losses, self._forward, self._take_step

    @property
    def skipped_steps(self) -> int | None:
        """None without a scaler. Waits for the device."""
        return None if self.optimization.scaler is None else int(self.optimization.skipped_steps)

    @property
    def is_within_epoch(self) -> bool:
        return self.batch > 0

    def _batches_from_here(self) -> Iterator[tuple[Tensor, Tensor]]:
        if self._stream is None:
            self._stream = self._batches.epoch(self.epoch, self.batch)
        return self._stream

    def _move_on(self, steps: int) -> None:
        self.step += steps
        self.batch += steps
        if self.batch == self._batches.steps_per_epoch:
            next(self._batches_from_here(), None)  # lets the loader end its epoch, instead of giving it up
            self._stream = None
            self.epoch += 1
            self.batch = 0

    def _take_first_step(self, images: Tensor, labels: Tensor) -> Tensor:
        started = self._clock.read()
        with nullcontext() if self._is_compiled else self.dtypes.watching(self.model):
            loss = self.optimization.step(self._checked_forward, images, labels)
        if self._is_compiled:
            self.first_step_seconds = self._clock.read() - started
            self.first_step_cache = cache_state()
        self._take_step = partial(self.optimization.step, self._forward)
        return loss

    def _checked_forward(self, images: Tensor) -> Tensor:
        """A label beyond the logits would end in an index error, or on a GPU spoil the process."""
        logits = self._forward(images)
        if not isinstance(logits, Tensor):
            raise InputError(f"model: it returned a {type(logits).__name__}; it must return one tensor, the logits")
        if logits.ndim != 2 or len(logits) != len(images) or logits.shape[1] < self._num_classes:
            raise InputError(
                f"model: for {len(images)} images of {self._num_classes} classes it must return logits of the shape "
                f"({len(images)}, {self._num_classes}), got {tuple(logits.shape)}; correct the model, the labels or "
                "num_classes"
            )
        self.dtypes.see(logits)
        return logits


def plain_name(name: str) -> str:
    """Of a parameter, whether or not a user compiled a part of the model: torch puts `_orig_mod.` before its own."""
    return name.replace("_orig_mod.", "")
