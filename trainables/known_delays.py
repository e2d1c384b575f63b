"""A data set and a model that take a known time: what a measurement must find again.

Usable in any search space, as `trainables.known_delays:slow_data` and `trainables.known_delays:slow_model`.
"""

import os
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.utils.data import Dataset

from trainables.delay_account import DelayAccount, DelayedWork, of_work, read_delays

CLASSES = 10
SIDE = 8


class SlowImages(Dataset[tuple[Tensor, int]]):
    """Every item takes a sleep; a row of the image shows its label."""

    classes = tuple(str(label) for label in range(CLASSES))

    def __init__(self, images: int, seconds_per_image: float, account: str) -> None:
        self._images = images
        self._seconds = seconds_per_image
        self._account = DelayAccount(account)
        self._patterns = torch.zeros(CLASSES, 1, SIDE, SIDE)
        for label in range(CLASSES):
            self._patterns[label, 0, label % SIDE, : 1 + label // SIDE] = 1.0

    def __len__(self) -> int:
        return self._images

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        return self.__getitems__([index])[0]

    def __getitems__(self, indices: Sequence[int]) -> list[tuple[Tensor, int]]:
        """One sleep after the other, so that between them next to nothing takes time that is not known."""
        if self._seconds:
            self._account.sleep(DelayedWork.LOADED, len(indices), self._seconds, times=len(indices))
        labels = [index % CLASSES for index in indices]
        return [(self._patterns[label], label) for label in labels]


def slow_data(
    train_images: int = 1024,
    validation_images: int = 16,
    seconds_per_image: float = 0.0,
    account: str = os.devnull,
) -> tuple[Dataset[tuple[Tensor, int]], Dataset[tuple[Tensor, int]]]:
    """Training images of 1 x 8 x 8 that take `seconds_per_image` each; validation images take no time.

    `account` is a file that says afterwards what was really slept.
    """
    return SlowImages(train_images, seconds_per_image, account), SlowImages(validation_images, 0.0, account)


class SlowModel(nn.Module):
    """A linear model whose forward sleeps on the host, in the steps of a compiled model too."""

    def __init__(self, step_seconds: float, evaluation_seconds: float, compile_seconds: float, account: str) -> None:
        super().__init__()
        self.linear = nn.Linear(SIDE * SIDE, CLASSES)
        self._step_seconds = step_seconds
        self._evaluation_seconds = evaluation_seconds
        self._compile_seconds = compile_seconds
        self._account = account

    def forward(self, images: Tensor) -> Tensor:
        seconds = self._step_seconds if self.training else self._evaluation_seconds
        work = DelayedWork.TRAINED if self.training else DelayedWork.EVALUATED
        awaited = after_a_sleep(images, work.value, seconds, self._compile_seconds, self._account)
        logits: Tensor = self.linear(awaited.flatten(1))
        return logits


def slow_model(
    step_seconds: float = 0.0,
    evaluation_seconds: float = 0.0,
    compile_seconds: float = 0.0,
    account: str = os.devnull,
) -> nn.Module:
    """`step_seconds` for each training batch, `evaluation_seconds` for each batch of an evaluation, `compile_seconds`
    once, while the compiler looks at the model. `account` is a file that says afterwards what was really slept.
    """
    return SlowModel(step_seconds, evaluation_seconds, compile_seconds, account)


@torch.library.custom_op("known_delays::after_a_sleep", mutates_args=())
def after_a_sleep(
    images: Tensor,
    work: str,
    seconds: float,
    compile_seconds: float,  # noqa: ARG001 - for the compiler, below, which is given the same arguments
    account: str,
) -> Tensor:
    """A copy of `images`. An operator of its own, so that the compiler takes it as it is and calls it in each step."""
    DelayAccount(account).sleep(DelayedWork(work), len(images), seconds)
    return images.clone()


@after_a_sleep.register_fake
def _while_compiling(images: Tensor, _work: str, _seconds: float, compile_seconds: float, account: str) -> Tensor:
    """The compiler asks what the operator would return, several times; the first time takes `compile_seconds`."""
    if compile_seconds and not of_work(read_delays(account), DelayedWork.COMPILED):
        DelayAccount(account).sleep(DelayedWork.COMPILED, 0, compile_seconds)
    return torch.empty_like(images)
