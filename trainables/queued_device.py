"""A device that works off its own queue, on a clock that is not real: what timing says of it, with waiting and without.

A GPU is such a device: a call returns before its work is done.
"""

from collections.abc import Callable
from dataclasses import dataclass

from trainables.specs import MeasurementProtocol

STEP_SECONDS = 0.01
"""What the device needs for a step."""
CALL_SECONDS = 0.0001
"""What the host needs to give it one."""
BATCH_IMAGES = 64
LEFT_OVER_STEPS = 20
"""Still in the queue when timing begins: work that is not to be charged to it."""
STEPS = 4000


class QueuedDevice:
    """The host's clock moves when it gives a step to the device, and when it waits for it."""

    def __init__(self, *, call_seconds: float = 0.0) -> None:
        self.now = 0.0
        self.busy_until = 0.0
        self.waits = 0
        self._call_seconds = call_seconds

    def submit(self, seconds: float) -> None:
        self.now += self._call_seconds
        self.busy_until = max(self.busy_until, self.now) + seconds

    def synchronize(self) -> None:
        self.waits += 1
        self.now = max(self.now, self.busy_until)

    def read_clock(self) -> float:
        return self.now


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueTiming:
    """Images per second of one and the same training."""

    true_rate: float
    """One batch in each `STEP_SECONDS`."""
    synchronized_rate: float
    """By the timing of every trial, which waits for the device at both ends of a window."""
    unsynchronized_rate: float
    """By the same timing where the wait is missing."""


def time_queued_device() -> QueueTiming:
    waiting, careless = (QueuedDevice(call_seconds=CALL_SECONDS) for _ in range(2))
    return QueueTiming(
        true_rate=BATCH_IMAGES / STEP_SECONDS,
        synchronized_rate=_timed_rate(waiting, waiting.synchronize),
        unsynchronized_rate=_timed_rate(careless, _no_wait),
    )


def _timed_rate(device: QueuedDevice, synchronize: Callable[[], None]) -> float:
    from trainables.timing import DeviceClock, WindowTimer  # here: whoever only reads the result needs no torch

    clock = DeviceClock(synchronize=synchronize, clock=device.read_clock)
    timer = WindowTimer(MeasurementProtocol(epochs=1), clock)
    for _ in range(LEFT_OVER_STEPS):
        device.submit(STEP_SECONDS)
    timer.resume()
    for _ in range(STEPS):
        device.submit(STEP_SECONDS)
        timer.count(BATCH_IMAGES)
    timer.pause()
    return sum(timer.window_images) / sum(timer.window_seconds)


def _no_wait() -> None:
    return None
