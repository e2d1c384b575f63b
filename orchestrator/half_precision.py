"""Why half precision bought nothing: which of the known causes the numbers of a matched pair and its sweep show."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from orchestrator.comparison import MatchedPair
from orchestrator.findings import Evidence
from orchestrator.results import Result
from trainables.measurements import DiagnosisMeasurement
from trainables.specs import KNOBS

DATA_WAIT = 0.1
"""Part of the loop's time that compute alone does not need, from which on the loop waits for data."""

COMPUTE_GAIN = 1.05
"""How much faster compute alone must be for the loop to have hidden a gain: processes differ by 2 %."""

LAUNCH_BOUND = 0.9
"""Part of the steps' time that the host needs to give them to the device, from which on the device waits for it."""

STILL_RISING = 1.1
"""Images per second at the next larger batch over those at this one, from which on this one does not fill the device.
Five standard deviations of what differs between processes.
"""


class NoGainCause(StrEnum):
    """The surest first."""

    EMULATED = "emulated"
    """The device has no instructions for the type."""
    NO_TENSOR_CORES = "no_tensor_cores"
    """It has no matrix units for it."""
    DATA_BOUND = "data_bound"
    """The loop waits for the loader, which hides what compute gained."""
    LAUNCH_BOUND = "launch_bound"
    """The device waits for the host to give it work."""
    BATCH_TOO_SMALL = "batch_too_small"
    """Images per second still rise with the batch size."""
    NONE_SHOWN = "none_shown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    causes: tuple[NoGainCause, ...]
    """At least one; `NONE_SHOWN` alone where the numbers show none."""
    evidence: Evidence
    not_known: tuple[str, ...]
    """What was not measured, and might have shown one."""


class BatchSizes:
    """The trials of a sweep that differ in batch size alone."""

    def __init__(self, pairs: Iterable[MatchedPair]) -> None:
        self._alike: defaultdict[object, dict[int, Result]] = defaultdict(dict)
        for pair in pairs:
            if pair.knob == "batch_size":
                for result in (pair.before, pair.after):
                    self._alike[_but_batch_size(result)][result.outcome.spec.config.batch_size] = result

    def next_larger(self, result: Result) -> Result | None:
        sizes = self._alike.get(_but_batch_size(result), {})
        larger = [size for size in sizes if size > result.outcome.spec.config.batch_size]
        return sizes[min(larger)] if larger else None


def explain(pair: MatchedPair, batch_sizes: BatchSizes) -> Explanation:
    """`pair` is one of fp32 and a half precision that was not faster."""
    precision = pair.after.outcome.precision
    diagnosis = pair.after.outcome.diagnosis or DiagnosisMeasurement()
    found: dict[NoGainCause, Mapping[str, float | int | str]] = {}
    not_known = []
    if precision is not None and precision.emulated:
        found[NoGainCause.EMULATED] = {}
    elif precision is None or precision.tensor_cores is None:
        not_known.append("whether the device has matrix units for the type")
    elif not precision.tensor_cores:
        found[NoGainCause.NO_TENSOR_CORES] = {}
    if pair.after.loop.compute is None:
        not_known.append("how fast its compute alone is")
    elif waiting := _data_wait(pair):
        found[NoGainCause.DATA_BOUND] = waiting
    if diagnosis.host_fraction is not None and diagnosis.host_fraction >= LAUNCH_BOUND:
        found[NoGainCause.LAUNCH_BOUND] = {"host_fraction": diagnosis.host_fraction}
    elif diagnosis.host_fraction is None and pair.after.key.device != "cpu":
        not_known.append("whether the device waits for launches")
    larger = batch_sizes.next_larger(pair.after)
    growth = None if larger is None else _growth(pair.after, larger, waits=NoGainCause.DATA_BOUND in found)
    if larger is None or growth is None:
        not_known.append("how fast a larger batch is")
    elif growth >= STILL_RISING:
        found[NoGainCause.BATCH_TOO_SMALL] = {
            "batch_size": pair.after.outcome.spec.config.batch_size,
            "larger_batch_size": larger.outcome.spec.config.batch_size,
            "batch_speedup": growth,
        }
    return Explanation(
        causes=tuple(cause for cause in NoGainCause if cause in found) or (NoGainCause.NONE_SHOWN,),
        evidence={name: value for evidence in found.values() for name, value in evidence.items()},
        not_known=tuple(not_known),
    )


def _data_wait(pair: MatchedPair) -> Mapping[str, float | int | str] | None:
    """Evidence that the loop waits for data; None where it does not, or where compute alone gained nothing either."""
    loop, before = pair.after.loop, pair.before.loop.compute
    if loop.end_to_end is None or loop.compute is None or (loop.data_wait_fraction or 0.0) < DATA_WAIT:
        return None
    compute = loop.compute.images_per_second
    evidence = {"end_to_end_rate": loop.end_to_end.images_per_second, "compute_rate": compute}
    if before is None:
        return evidence
    gain = compute / before.images_per_second
    return evidence | {"compute_speedup": gain} if gain >= COMPUTE_GAIN else None


def _growth(result: Result, larger: Result, *, waits: bool) -> float | None:
    """Of compute alone where it is known of both, else of the whole loop, unless that waits for data."""
    if result.loop.compute is not None and larger.loop.compute is not None:
        return larger.loop.compute.images_per_second / result.loop.compute.images_per_second
    if waits or result.rate is None or larger.rate is None:
        return None
    return larger.rate.images_per_second / result.rate.images_per_second


_BATCH_SIZE = KNOBS.index("batch_size")


def _but_batch_size(result: Result) -> object:
    return result.key, result.seed_key, result.knobs[:_BATCH_SIZE] + result.knobs[_BATCH_SIZE + 1 :]
