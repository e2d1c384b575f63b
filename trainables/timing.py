"""The only reader of a clock for a measurement: it waits for the device, then reads."""

import math
import time
from collections.abc import Callable
from typing import TypeVar

import torch

from trainables.specs import MeasurementProtocol

Number = TypeVar("Number", int, float)

MOST_WINDOWS = 120
"""A longer training merges its windows in pairs, so that hours of training keep 60 to 120 of them."""

_SLACK = 1.1
"""A window expected to be long enough should not turn out to be a little too short: that costs a wait for nothing."""


class DeviceClock:
    """Seconds on the host's clock. `clock` and `synchronize` are given so that tests can play both."""

    def __init__(self, *, synchronize: Callable[[], None], clock: Callable[[], float] = time.perf_counter) -> None:
        self._synchronize = synchronize
        self._clock = clock

    @classmethod
    def of(cls, device: torch.device) -> "DeviceClock":
        """A CPU computes before it returns: there is nothing to wait for."""
        if device.type == "cpu":
            return cls(synchronize=_nothing)
        return cls(synchronize=lambda: torch.accelerator.synchronize(device))

    def read(self) -> float:
        """The time when all the work given to the device is done."""
        self._synchronize()
        return self._clock()

    def glance(self) -> float:
        """The time now, without waiting: it may decide when to read, and is never part of a measurement."""
        return self._clock()


def _nothing() -> None:
    return None


def _never() -> int:
    return 0


class WindowTimer:
    """Times windows of optimizer steps in the training itself.

    A window lasts at least `window_steps` steps and `window_seconds`. The device is waited for at its two ends only,
    never in a step. `pause` and `resume` keep evaluation, checkpoints and reports outside. Whatever is uncounted is
    uncounted in images and in seconds alike, so the images of a window are exact.

    Batches of W loader workers arrive in bunches of W where the loader is slow: every window holds a multiple of W
    steps (`step_multiple`), or it would time more bunches, or fewer, than its steps came in.
    """

    def __init__(
        self,
        protocol: MeasurementProtocol,
        clock: DeviceClock,
        *,
        step_multiple: int = 1,
        step_seconds: float | None = None,
        images: tuple[int, ...] = (),
        seconds: tuple[float, ...] = (),
        merges: int = 0,
        disturbances: Callable[[], int] = _never,
    ) -> None:
        """`step_seconds` is what a step is known to take: it keeps the first window of a queueing device short.

        `images`, `seconds` and `merges` are those of an earlier part of the same training. `disturbances` counts what
        is no part of a training's speed, as is compiling: a window with one is dropped.
        """
        self._clock = clock
        self._step_multiple = step_multiple
        self._disturbances = disturbances
        self._disturbances_before = 0
        self._banked_disturbances = 0
        self.disturbances_while_timed = 0
        self.window_images = list(images)
        self.window_seconds = list(seconds)
        self.merges = merges
        """How often neighbouring windows were merged: each time the shortest window doubles."""
        self._active_seconds = 0.0
        self._fewest_steps: int = math.ceil(protocol.window_steps / step_multiple) * step_multiple * 2**merges
        self._shortest_seconds: float = protocol.window_seconds * 2**merges
        self._uncounted = 0
        self._steps = 0
        self._images = 0
        self._banked_seconds = 0.0
        self._look_at = self._fewest_steps
        self._enough_steps = _SLACK * self._shortest_seconds / step_seconds if step_seconds else math.inf
        """Steps that make a window long enough at the rate of the last one: the host can be far ahead of the device."""
        self._started = 0.0
        self._resumed: float | None = None

    def resume(self, *, uncounted_steps: int = 0) -> None:
        """Steps are timed from here, but for the next `uncounted_steps` of them.

        Where some are left out, the bunch that a pause broke is over: its window is thrown away.
        """
        if uncounted_steps and self._steps % self._step_multiple:
            self._begin_window()
        self._uncounted = max(self._uncounted, uncounted_steps)
        self._resumed = self._clock.read()
        self._start(self._resumed)

    def count(self, images: int) -> None:
        """One optimizer step of `images` images has been given to the device."""
        if self._uncounted:
            self._leave_out()
            return
        self._steps += 1
        self._images += images
        if self._steps >= self._look_at:
            self._look()

    def pause(self) -> None:
        """Steps are not timed from here on; a window that is long enough ends, another waits for `resume`."""
        if self._resumed is None:
            return
        now = self._clock.read()
        self._active_seconds += now - self._resumed
        self._resumed = None
        if not self._uncounted:
            self._bank(now)
            self._end_window_if_long_enough()

    @property
    def active_seconds(self) -> float:
        """Seconds between `resume` and `pause`, warm-up included; in between, as far as the host has come."""
        running = 0.0 if self._resumed is None else self._clock.glance() - self._resumed
        return self._active_seconds + running

    @property
    def is_warming_up(self) -> bool:
        return self._uncounted > 0

    def recent_rate(self) -> float | None:
        """Images per second of the last few windows, for a live view."""
        seconds = sum(self.window_seconds[-5:])
        return sum(self.window_images[-5:]) / seconds if seconds else None

    def _leave_out(self) -> None:
        self._uncounted -= 1
        if not self._uncounted:
            self._start(self._clock.read())

    def _start(self, now: float) -> None:
        self._started = now
        self._disturbances_before = self._disturbances()

    def _bank(self, now: float) -> None:
        self._banked_seconds += now - self._started
        disturbances = self._disturbances() - self._disturbances_before
        self._banked_disturbances += disturbances
        self.disturbances_while_timed += disturbances
        self._start(now)

    def _look(self) -> None:
        self._look_at = self._steps + self._step_multiple
        seconds = self._banked_seconds + self._clock.glance() - self._started
        if seconds < self._shortest_seconds and self._steps < self._enough_steps:
            return
        self._bank(self._clock.read())
        self._end_window_if_long_enough()

    def _end_window_if_long_enough(self) -> None:
        if not self._is_long_enough():
            return
        if self._banked_disturbances:
            self._begin_window()
            return
        if len(self.window_images) == MOST_WINDOWS:
            self._merge_neighbours()
            if not self._is_long_enough():
                return
        self._enough_steps = math.ceil(_SLACK * self._steps * self._shortest_seconds / self._banked_seconds)
        self.window_images.append(self._images)
        self.window_seconds.append(self._banked_seconds)
        self._begin_window()

    def _begin_window(self) -> None:
        self._steps = self._images = self._banked_disturbances = 0
        self._banked_seconds = 0.0
        self._look_at = self._fewest_steps

    def _is_long_enough(self) -> bool:
        enough_steps = self._steps >= self._fewest_steps and self._steps % self._step_multiple == 0
        return enough_steps and self._banked_seconds >= self._shortest_seconds

    def _merge_neighbours(self) -> None:
        self.window_images = _in_pairs(self.window_images)
        self.window_seconds = _in_pairs(self.window_seconds)
        self.merges += 1
        self._fewest_steps *= 2
        self._shortest_seconds *= 2
        self._enough_steps *= 2
        self._look_at = max(self._look_at, self._fewest_steps)


def _in_pairs(values: list[Number]) -> list[Number]:
    return [first + second for first, second in zip(values[::2], values[1::2], strict=True)]
