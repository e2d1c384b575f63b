"""The three rates of a training loop: what limits it, whether they fit each other, and what faster compute can give.

With loader workers, and on a device that works off a queue while the host loads, the whole loop runs at about the
slower of compute and loader (it was seen 5 to 9 % below it near their crossing). A CPU without workers does both in
turn: 1 / whole = 1 / compute + 1 / loader (it held within 5 %). A host without workers that gives steps to a queue
loads and issues in turn, and the queue does the rest meanwhile.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import geometric_mean

from orchestrator.statistics import ProcessRate, combined_df, process_rate, student_t
from trainables.measurements import ThroughputMeasurement
from trainables.outcomes import TrialOutcome

MOST_DISAGREEMENT = 0.15
"""Between the rate that compute and loader predict and the one that was measured, beyond their errors."""

NEAR_CROSSING = 0.05
"""Compute and loader that differ by no more than this limit the loop together."""

HIDDEN_DIFFERENCE = 0.1
"""What a difference in compute makes of a loop that waits for data, where it is called the loader's: a loader's own
rate was seen to move by as much from trial to trial.
"""


class Bottleneck(StrEnum):
    DATA = "data"
    """The loader alone is slower than compute alone."""
    COMPUTE = "compute"
    UNCLEAR = "unclear"
    """The two are alike, or the three rates do not fit each other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopRates:
    """What was measured of a loop; None where it was not. Properties are None where they need what was not."""

    end_to_end: ProcessRate | None
    compute: ProcessRate | None
    loader: ProcessRate | None
    num_workers: int
    host_fraction: float
    """Of the time of compute, what keeps the host from loading: 1 on a CPU, which is its own host."""

    @property
    def data_wait_fraction(self) -> float | None:
        """The part of the loop's time that compute alone would not have needed, at least 0."""
        if self.end_to_end is None or self.compute is None:
            return None
        return max(0.0, 1 - self.end_to_end.images_per_second / self.compute.images_per_second)

    @property
    def predicted_images_per_second(self) -> float | None:
        """Of the whole loop, from its parts."""
        if self.compute is None or self.loader is None:
            return None
        return self.predicted_with(self.compute.images_per_second, self.loader.images_per_second)

    def predicted_with(self, compute: float, loader: float) -> float:
        """Images per second of a loop of this kind with these parts."""
        if self.num_workers:
            return min(compute, loader)
        return 1 / max(1 / compute, 1 / loader + self.host_fraction / compute)

    @property
    def disagreement(self) -> float | None:
        """The measured rate over the predicted one, less 1."""
        predicted = self.predicted_images_per_second
        return (
            None if predicted is None or self.end_to_end is None else self.end_to_end.images_per_second / predicted - 1
        )

    @property
    def agrees(self) -> bool | None:
        off = self.disagreement
        if off is None:
            return None
        return abs(math.log1p(off)) <= math.log1p(MOST_DISAGREEMENT) + _reach(
            self.end_to_end, self.compute, self.loader
        )

    @property
    def bottleneck(self) -> Bottleneck | None:
        if self.compute is None or self.loader is None:
            return None
        distance = math.log(self.compute.images_per_second / self.loader.images_per_second)
        near = max(math.log1p(NEAR_CROSSING), _reach(self.compute, self.loader))
        if self.agrees is False or abs(distance) <= near:
            return Bottleneck.UNCLEAR
        return Bottleneck.DATA if distance > 0 else Bottleneck.COMPUTE

    @property
    def ceiling(self) -> float | None:
        """How many times as fast the loop can get at most, however fast compute becomes: the loader's rate over its."""
        if self.end_to_end is None or self.loader is None:
            return None
        return max(1.0, self.loader.images_per_second / self.end_to_end.images_per_second)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunsRates:
    """The rates of one configuration over its seeds and replicates: geometric means of those known."""

    compute_images_per_second: float | None
    loader_images_per_second: float | None
    data_wait_fraction: float | None
    """The mean."""
    bottleneck: Bottleneck | None
    """Unclear where the runs differ."""


def loop_rates(outcome: TrialOutcome, end_to_end: ProcessRate | None) -> LoopRates:
    diagnosis = outcome.diagnosis
    on_cpu = outcome.device.device == "cpu"
    measured_host = diagnosis.host_fraction if diagnosis else None
    return LoopRates(
        end_to_end=end_to_end,
        compute=_rate(diagnosis.compute if diagnosis else None),
        loader=_rate(diagnosis.loader if diagnosis else None),
        num_workers=outcome.spec.config.num_workers,
        host_fraction=1.0 if on_cpu else min(1.0, measured_host or 0.0),
    )


def hides_compute(before: LoopRates, after: LoopRates) -> bool:
    """Whether two loops that differ in compute alone both wait for data, so that their difference is the loader's."""
    if not (before.bottleneck is after.bottleneck is Bottleneck.DATA):
        return False
    if before.compute is None or after.compute is None or before.loader is None or after.loader is None:
        return False
    loader = geometric_mean([before.loader.images_per_second, after.loader.images_per_second])
    expected = after.predicted_with(after.compute.images_per_second, loader)
    expected /= before.predicted_with(before.compute.images_per_second, loader)
    return abs(math.log(expected)) <= math.log1p(HIDDEN_DIFFERENCE)


def runs_rates(runs: Sequence[LoopRates]) -> RunsRates:
    verdicts = {run.bottleneck for run in runs if run.bottleneck is not None}
    waits = [run.data_wait_fraction for run in runs if run.data_wait_fraction is not None]
    return RunsRates(
        compute_images_per_second=_mean_rate([run.compute for run in runs]),
        loader_images_per_second=_mean_rate([run.loader for run in runs]),
        data_wait_fraction=math.fsum(waits) / len(waits) if waits else None,
        bottleneck=(verdicts.pop() if len(verdicts) == 1 else Bottleneck.UNCLEAR) if verdicts else None,
    )


def _mean_rate(rates: Sequence[ProcessRate | None]) -> float | None:
    known = [rate.images_per_second for rate in rates if rate is not None]
    return geometric_mean(known) if known else None


def _reach(*parts: ProcessRate | None) -> float:
    """Half of the 95 % interval of a product or ratio of these rates, as a logarithm, in one process."""
    variances = [(part.standard_error**2, part.df) for part in parts if part is not None]
    return student_t(combined_df(variances)) * math.sqrt(math.fsum(variance for variance, _ in variances))


def _rate(measured: ThroughputMeasurement | None) -> ProcessRate | None:
    """None too where the windows give no possible rate."""
    if measured is None:
        return None
    try:
        return process_rate(measured)
    except ValueError:
        return None
