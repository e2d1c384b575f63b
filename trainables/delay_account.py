"""What known delays really did: one line of a file for each, written by whichever process slept."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path


class DelayedWork(StrEnum):
    """Where a delay was injected."""

    LOADED = "loaded"
    """The data set made training images."""
    TRAINED = "trained"
    """The model took a training batch."""
    EVALUATED = "evaluated"
    """The model took a batch of an evaluation."""
    COMPILED = "compiled"
    """The compiler looked at the model for the first time."""


@dataclass(frozen=True, slots=True)
class Delay:
    work: DelayedWork
    images: int
    seconds: float
    """Really slept; a little more than was asked for."""


class DelayAccount:
    """Every line is appended in one piece, so that loader workers can share the open file."""

    def __init__(self, path: str) -> None:
        self._file = Path(path).open("ab", buffering=0)  # noqa: SIM115 - open as long as the account: opening takes time

    def sleep(self, work: DelayedWork, images: int, seconds: float, *, times: int = 1) -> None:
        """Sleeps so many times, and writes down for how long in all."""
        started = time.perf_counter()
        for _ in range(times if seconds > 0 else 0):
            time.sleep(seconds)
        slept = time.perf_counter() - started
        self._file.write(f"{work.value} {images} {slept!r}\n".encode())


def read_delays(path: str) -> list[Delay]:
    """In the order in which they ended; none where nothing was written."""
    file = Path(path)
    lines = [line.split() for line in file.read_text().splitlines()] if file.exists() else []
    return [Delay(DelayedWork(work), int(images), float(seconds)) for work, images, seconds in lines]


def of_work(delays: Sequence[Delay], work: DelayedWork) -> list[Delay]:
    return [delay for delay in delays if delay.work is work]


def images_of(delays: Sequence[Delay]) -> int:
    return sum(delay.images for delay in delays)


def seconds_of(delays: Sequence[Delay]) -> float:
    return sum(delay.seconds for delay in delays)
