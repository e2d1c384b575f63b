"""Small models and data sets that become non-finite, each in one way, for the tests of what a replay finds."""

import weakref
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import Dataset

from tests.toy_entries import Mlp, NanFromStep, Stripes, noisy_stripes, stripes

__all__ = ["noisy_stripes", "stripes"]


class Amplifier(nn.Module):
    """From the given training forward on, its output is beyond float16, and well within float32.

    It counts in a buffer, so a checkpoint goes on from its count.
    """

    def __init__(self, step: int) -> None:
        super().__init__()
        self.step = step
        self.register_buffer("forwards", torch.zeros((), dtype=torch.int64))

    def forward(self, hidden: Tensor) -> Tensor:
        self.forwards += int(self.training)
        return hidden * 1e6 if self.training and self.forwards >= self.step else hidden


class Amplified(Mlp):
    def __init__(self, step: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.middle = nn.Sequential(nn.ReLU(), nn.Dropout(dropout), Amplifier(step))

    def forward(self, images: Tensor) -> Tensor:
        return self.second(self.middle(self.first(images.flatten(1))))


def amplified(step: int = 5, dropout: float = 0.0) -> nn.Module:
    return Amplified(step, dropout)


class Mask(nn.Module):
    """Puts out infinities on purpose, in every step."""

    def forward(self, logits: Tensor) -> Tensor:
        return torch.full_like(logits, float("-inf"))


class Masked(Mlp):
    """Its mask hides the last class, which no image has; from the given training forward on its logits are NaN."""

    def __init__(self, step: int) -> None:
        super().__init__()
        self.mask = Mask()
        self.last = NanFromForward(step)

    def forward(self, images: Tensor) -> Tensor:
        logits = super().forward(images)
        return self.last(torch.where(torch.arange(10) == 9, self.mask(logits), logits))


class NanFromForward(nn.Module):
    def __init__(self, step: int) -> None:
        super().__init__()
        self.step = step
        self.forwards = 0

    def forward(self, logits: Tensor) -> Tensor:
        self.forwards += self.training
        return logits * float("nan") if self.training and self.forwards >= self.step else logits


def masked(step: int = 5) -> nn.Module:
    return Masked(step)


class NineClasses(Stripes):
    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        image, label = super().__getitem__(index)
        return image, label % 9


def nine_classes() -> tuple[Dataset, Dataset]:
    return NineClasses(96), NineClasses(40)


class HalfGradientOverflow(Mlp):
    """In float16 alone, the gradient overflows in the given number of first training forwards."""

    def __init__(self, steps: int) -> None:
        super().__init__()
        self.steps = steps
        self.forwards = 0

    def forward(self, images: Tensor) -> Tensor:
        logits = super().forward(images)
        self.forwards += self.training
        if self.training and logits.dtype is torch.float16 and self.forwards <= self.steps:
            logits.register_hook(lambda gradient: gradient * float("inf"))
        return logits


def half_gradient_overflow(steps: int) -> nn.Module:
    return HalfGradientOverflow(steps)


class NanGradient(Mlp):
    """From the given training forward on, the gradient of one layer is NaN; its loss is finite."""

    def __init__(self, step: int) -> None:
        super().__init__()
        self.step = step
        self.forwards = 0

    def forward(self, images: Tensor) -> Tensor:
        hidden = functional.relu(self.first(images.flatten(1)))
        self.forwards += self.training
        if self.training and self.forwards >= self.step:
            hidden.register_hook(lambda gradient: gradient * float("nan"))
        return self.second(hidden)


def nan_gradient(step: int = 5) -> nn.Module:
    return NanGradient(step)


class NanWhenCompiled(Mlp):
    def forward(self, images: Tensor) -> Tensor:
        logits = super().forward(images)
        return logits * float("nan") if torch.compiler.is_compiling() and self.training else logits


def nan_when_compiled() -> nn.Module:
    return NanWhenCompiled()


class NanOnce(NanFromStep):
    """Only the first one that is built in this process becomes NaN."""

    built = 0

    def __init__(self, step: int) -> None:
        NanOnce.built += 1
        super().__init__(step, float("nan") if NanOnce.built == 1 else 1.0)


def nan_once() -> nn.Module:
    return NanOnce(5)


class Solitary(Amplified):
    """Cannot be built while another one is in memory, as on a device that holds one model only."""

    others: ClassVar[weakref.WeakSet["Solitary"]] = weakref.WeakSet()

    def __init__(self, step: int) -> None:
        if len(Solitary.others):
            raise torch.OutOfMemoryError("CUDA out of memory: there is another model")
        super().__init__(step)
        Solitary.others.add(self)


def solitary() -> nn.Module:
    return Solitary(5)


class BuiltSoOften(Amplified):
    """Raises when it is built more often in this process."""

    left = 0

    def __init__(self) -> None:
        if BuiltSoOften.left == 0:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB")
        BuiltSoOften.left -= 1
        super().__init__(5)


def built_so_often() -> nn.Module:
    return BuiltSoOften()


class OneNan(Stripes):
    def __init__(self, images: int, broken: int) -> None:
        super().__init__(images)
        self.broken = broken

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        image, label = super().__getitem__(index)
        return image * float("nan") if index == self.broken else image, label


def nan_image(index: int) -> tuple[Dataset, Dataset]:
    return OneNan(96, index), Stripes(40)


def nan_validation_image(index: int) -> tuple[Dataset, Dataset]:
    return Stripes(96), OneNan(40, index)
