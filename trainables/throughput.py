"""A training's throughput: from its own windows, or where they are too few from further steps that leave no trace."""

from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from statistics import median

from torch import Tensor, nn

from trainables.measurements import ThroughputMeasurement
from trainables.process_state import restored_generators
from trainables.specs import MeasurementProtocol
from trainables.timing import DeviceClock, WindowTimer
from trainables.trial_setup import TrialParts


def windows_of(timer: WindowTimer | None, *, measured_on: str = "training") -> ThroughputMeasurement | None:
    """None where there is no whole window."""
    if timer is None or not timer.window_images:
        return None
    return ThroughputMeasurement(
        window_images=tuple(timer.window_images),
        window_seconds=tuple(timer.window_seconds),
        measured_on=measured_on,
    )


def seconds_per_image(throughput: ThroughputMeasurement | None) -> float | None:
    """By the median window."""
    if throughput is None:
        return None
    pairs = zip(throughput.window_seconds, throughput.window_images, strict=True)
    return median(seconds / images for seconds, images in pairs)


def needs_a_copy(timer: WindowTimer, protocol: MeasurementProtocol) -> bool:
    """Whether the training gave too few windows, and measuring on a copy can be expected to give more."""
    windows = timer.window_seconds
    if len(windows) >= protocol.windows:
        return False
    return not windows or protocol.copy_seconds / median(windows) > len(windows)


def measure_on_a_copy(
    parts: TrialParts, protocol: MeasurementProtocol, clock: DeviceClock, *, uncounted_steps: int
) -> ThroughputMeasurement | None:
    """Trains on with the same objects, which need no second compilation, and puts weights and generators back."""
    timer = WindowTimer(
        protocol,
        clock,
        step_multiple=parts.batches.bunch,
        disturbances=parts.training.compiler_work.read,
    )
    with restored_generators(parts.to_device.device), restored_weights(parts.training.model):
        timer.resume(uncounted_steps=max(1, uncounted_steps))
        parts.training.measure(timer, windows=protocol.windows, seconds=protocol.copy_seconds)
        timer.pause()
    return windows_of(timer, measured_on="copy")


@contextmanager
def restored_weights(model: nn.Module) -> Iterator[None]:
    """Kept on the host: the device may have no room for them twice."""
    kept = {
        name: value.to("cpu", copy=True) if isinstance(value, Tensor) else deepcopy(value)
        for name, value in model.state_dict().items()
    }
    try:
        yield
    finally:
        model.load_state_dict(kept)


def more_windows(
    training: ThroughputMeasurement | None, copied: ThroughputMeasurement | None
) -> ThroughputMeasurement | None:
    """The one of more windows; the two are never mixed."""
    if training is None or copied is None:
        return training or copied
    return copied if len(copied.window_seconds) > len(training.window_seconds) else training
