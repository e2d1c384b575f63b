"""A training's steps taken again, one by one, each looked through for values that are not finite."""

import math
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from trainables.finiteness import Sighting, StepWatch, first_nonfinite_weight, nonfinite_rows
from trainables.measurements import NonFiniteIn
from trainables.specs import MeasurementProtocol
from trainables.timing import DeviceClock, WindowTimer
from trainables.training import Training
from trainables.trial_setup import TrialParts

MOST_IMAGES = 10
"""Images that are not finite of which the numbers are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Break:
    """The first value that is not finite in the first step that comes to no good end."""

    step: int
    """From 1."""
    place: NonFiniteIn
    module: str | None
    in_evaluation: bool = False
    images: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    broken: Break | None
    """None: all steps were finite."""
    gradient_norm: float | None
    """2-norm of the whole unscaled, unclipped gradient at the last step that was finite throughout."""


class Replay:
    """Waits for the device in every step. Of `parts`, the training and the timer are left alone."""

    def __init__(self, training: Training, parts: TrialParts) -> None:
        self._training = training
        self._parts = parts
        self._watch = StepWatch(training.model)
        self._broken: Break | None = None
        self._gradient_norm: float | None = None
        self._usual: set[Sighting] | None = None
        """What is not finite in every finite step so far, as masks are infinite: it breaks nothing."""

    def to(self, last_step: int, *, evaluated_step: int, protocol: MeasurementProtocol, clock: DeviceClock) -> Replayed:
        """Until a step breaks, or `last_step` is done. Evaluates at `evaluated_step`, if an interval ends there."""
        training, plan = self._training, self._parts.plan
        untimed = WindowTimer(protocol, clock)
        untimed.resume(uncounted_steps=last_step)
        training.take_steps_by(self._take_step)
        with self._watch.watching():
            while training.step < last_step and self._broken is None:
                training.train_to(training.step + 1, untimed)
                if self._broken is None and training.step == plan.interval_end(training.interval):
                    training.end_interval()
                    if training.step == evaluated_step:
                        self._broken = self._evaluate()
        return Replayed(broken=self._broken, gradient_norm=self._gradient_norm)

    def _take_step(self, images: Tensor, labels: Tensor) -> Tensor:
        training, optimization = self._training, self._training.optimization
        scale = 1.0 if optimization.scaler is None else optimization.scaler.get_scale()
        self._watch.begin()
        loss = optimization.find_gradients(training.model, images, labels)
        norms = self._watch.gradient_norms()
        optimization.move_weights()
        broken_gradient = next((name for name, norm in norms.items() if not math.isfinite(norm)), None)
        broken_weight = first_nonfinite_weight(training.model)
        # a scaler leaves out a step with such gradients, which is how it finds its scale
        is_broken = broken_gradient is not None and optimization.scaler is None
        if is_broken or broken_weight is not None or not loss.isfinite():
            self._broken = self._first(images, loss, broken_gradient, broken_weight)
        elif broken_gradient is None:
            self._gradient_norm = sum(norm**2 for norm in norms.values()) ** 0.5 / scale if scale else None
            self._remember_usual()
        return loss

    def _first(self, images: Tensor, loss: Tensor, gradient: str | None, weight: str | None) -> Break:
        """In the order in which a step makes its values."""
        training = self._training
        step = training.step + 1
        if rows := nonfinite_rows(images):
            drawn = self._parts.batches.indices(training.epoch, training.batch)
            return _broken_input(step, [int(drawn[row]) for row in rows])
        if modules := self._unusual_modules():
            return Break(step=step, place=NonFiniteIn.FORWARD, module=modules[0])
        if not loss.isfinite():
            return Break(step=step, place=NonFiniteIn.LOSS, module="loss")
        if gradient is not None:
            return Break(step=step, place=NonFiniteIn.GRADIENT, module=gradient)
        return Break(step=step, place=NonFiniteIn.WEIGHTS, module=weight)

    @torch.no_grad()
    def _evaluate(self) -> Break | None:
        """The same passes as the trial's own evaluation."""
        training, step = self._training, self._training.step
        autocast = training.optimization.autocast
        first = 0
        training.model.eval()
        try:
            for images, labels in self._validation_batches():
                self._watch.begin()
                with autocast or nullcontext():
                    logits = training.model(images)
                if not cross_entropy(logits.float(), labels, reduction="sum").isfinite():
                    if rows := nonfinite_rows(images):
                        return _broken_input(step, [first + row for row in rows], in_evaluation=True)
                    modules = self._unusual_modules()
                    place, module = (NonFiniteIn.FORWARD, modules[0]) if modules else (NonFiniteIn.LOSS, "loss")
                    return Break(step=step, place=place, module=module, in_evaluation=True)
                first += len(labels)
        finally:
            training.model.train()
        return None

    def _validation_batches(self) -> Iterator[tuple[Tensor, Tensor]]:
        for images, labels in self._parts.validation:
            yield self._parts.to_device(images, labels)

    def _unusual_modules(self) -> list[str]:
        return [seen.module for seen in self._watch.nonfinite_outputs() if seen not in (self._usual or ())]

    def _remember_usual(self) -> None:
        seen = set(self._watch.nonfinite_outputs())
        self._usual = seen if self._usual is None else self._usual & seen


def _broken_input(step: int, images: list[int], *, in_evaluation: bool = False) -> Break:
    kept = tuple(images[:MOST_IMAGES])
    return Break(step=step, place=NonFiniteIn.INPUT, module=None, images=kept, in_evaluation=in_evaluation)
