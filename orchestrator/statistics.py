"""What timed windows say about a rate, and how sure it is: medians, intervals, ratios and ties.

All spreads are standard deviations of natural logarithms, so that 0.02 reads as 2 % and a ratio's interval is the same
whichever way round it is taken.
"""

import math
import statistics
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from trainables.measurements import ThroughputMeasurement

INTERVAL_Z = 1.959964
"""Standard errors on either side of a 95 % interval."""

DEFAULT_BETWEEN_PROCESS_SD = 0.02
"""The same trial in another process: 1 to 2 % were seen; 1.5 % would call 8 of 100 equal pairs different at 2 %."""

PRIOR_DF = 8
"""Repeats that the default is worth, against the run's own, and the degrees of freedom that it is known with."""

MOST_CORRELATION = 0.9
"""Beyond it a series is all drift, and a correction for autocorrelation would divide by almost nothing."""

FEWEST_DF = 3.0
"""Of the error of many windows, however much they depend on each other: with fewer, an interval says nothing."""

ONE_WINDOW_SD = 0.1
"""Assumed for a single window, which says nothing of its own spread."""

LOWEST_RATE, HIGHEST_RATE = 1e-6, 1e12
"""Images per second beyond which a rate is a clock's fault; within them nothing here overflows."""

# Two-sided 95 % quantiles of Student's t by degrees of freedom (Fisher and Yates, table III).
_T_DF = (1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 60, 120)
_T_VALUES = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.306, 2.228, 2.131, 2.086, 2.042, 2.000, 1.980)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessRate:
    """The rate that the windows of one trial, in one process, give."""

    images_per_second: float
    """The median of the windows."""
    standard_error: float
    """Of the median, from the windows alone."""
    df: float
    """Degrees of freedom that the error is known with."""
    window_sd: float
    windows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RateEstimate:
    """A configuration's rate over all its processes, with the two variances of its logarithm."""

    images_per_second: float
    within: float
    """Variance from the windows within its processes."""
    within_df: float
    between: float
    """Variance from the differences between processes."""
    between_df: float

    @property
    def standard_error(self) -> float:
        return math.sqrt(self.within + self.between)

    @property
    def df(self) -> float:
        return combined_df([(self.within, self.within_df), (self.between, self.between_df)])

    @property
    def low(self) -> float:
        return self.images_per_second * math.exp(-student_t(self.df) * self.standard_error)

    @property
    def high(self) -> float:
        return self.images_per_second * math.exp(student_t(self.df) * self.standard_error)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """How many times as fast, with its 95 % interval."""

    value: float
    low: float
    high: float

    @property
    def is_tie(self) -> bool:
        return self.low <= 1.0 <= self.high

    def excludes_one_among(self, comparisons: int) -> bool:
        """Whether it would still be no tie if as many ratios had been looked at as there are `comparisons`."""
        return self.standard_errors > INTERVAL_Z * family_widening(comparisons)

    @property
    def standard_errors(self) -> float:
        """How far it is from 1, on either side, where its interval ends at 1.96; infinite where there is no error."""
        error = math.log(self.high / self.low) / (2 * INTERVAL_Z)
        distance = abs(math.log(self.value))
        return distance / error if error > 0 else math.inf if distance > 0 else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class BetweenProcess:
    """How much the same trial's rate moves from process to process."""

    sd: float
    repeats: int
    """Degrees of freedom of the run's own estimate; 0: the stated default alone."""

    @property
    def df(self) -> int:
        """Of the estimate and its prior together, as the moderated t has them (Smyth 2004)."""
        return PRIOR_DF + self.repeats


def window_rates(measurement: ThroughputMeasurement) -> list[float]:
    """Images per second of every window. Raises `ValueError` at a rate that no clock and device can give."""
    windows = zip(measurement.window_images, measurement.window_seconds, strict=True)
    rates = [images / seconds if seconds > 0 else math.inf for images, seconds in windows]
    wrong = [rate for rate in rates if not LOWEST_RATE <= rate <= HIGHEST_RATE]
    if wrong:
        raise ValueError(f"{len(wrong)} of {len(rates)} timed windows give no possible rate ({wrong[0]:g} images/s)")
    return rates


def process_rate(measurement: ThroughputMeasurement) -> ProcessRate:
    """Median of the windows, with the standard error of a median: sqrt(pi / 2) sd / sqrt(n) for normal noise.

    The sd is 1.4826 times the median absolute deviation (Rousseeuw and Croux 1993), so that a stall does not count, or
    the plain one where more than half of the windows are alike. n is the effective number of windows, and the error has
    n - 1 degrees of freedom (Zwiers and von Storch 1995). Raises `ValueError` as `window_rates` does.
    """
    rates = window_rates(measurement)
    logs = [math.log(rate) for rate in rates]
    sd, n = _robust_sd(logs), effective_number(logs)
    return ProcessRate(
        images_per_second=statistics.median(rates),
        standard_error=math.sqrt(math.pi / 2 / n) * sd,
        df=_within_df(len(logs), n),
        window_sd=sd,
        windows=len(rates),
    )


def _within_df(windows: int, effective: float) -> float:
    """The spread of a single window is assumed, as if it were known; two windows tell theirs with one degree."""
    return {1: math.inf, 2: 1.0}.get(windows, max(min(FEWEST_DF, windows - 1.0), effective - 1))


def effective_number(values: Sequence[float]) -> float:
    """Independent values that a series is worth: n (1 - r) / (1 + r), with r the lag-1 autocorrelation, never above n.

    For a first-order autoregressive series (Bayley and Hammersley 1946). A short series shows less autocorrelation than
    it has, on average r - (1 + 4 r) / n (Marriott and Pope 1954), and is corrected for that.
    """
    n = len(values)
    mean = math.fsum(values) / n
    off = [value - mean for value in values]
    variance = math.fsum(value * value for value in off)
    if n <= 4 or variance == 0.0:
        return float(n)
    seen = math.fsum(before * after for before, after in pairwise(off)) / variance
    correlation = min(max((n * seen + 1) / (n - 4), 0.0), MOST_CORRELATION)
    return n * (1 - correlation) / (1 + correlation)


def estimate_rate(processes: Sequence[ProcessRate], between: BetweenProcess) -> RateEstimate:
    """One rate from the repeats of a configuration: the geometric mean, its variance within and between over n."""
    n = len(processes)
    if n == 1:
        rate = processes[0].images_per_second
    else:
        rate = math.exp(math.fsum(math.log(process.images_per_second) for process in processes) / n)
    parts = [((process.standard_error / n) ** 2, process.df) for process in processes]
    return RateEstimate(
        images_per_second=rate,
        within=math.fsum(variance for variance, _ in parts),
        within_df=combined_df(parts),
        between=between.sd**2 / n,
        between_df=between.df,
    )


def combined_df(parts: Sequence[tuple[float, float]]) -> float:
    """Degrees of freedom of a sum of independent variances, each with its own (Satterthwaite 1946, Welch 1947)."""
    doubt = math.fsum(variance * variance / df for variance, df in parts)
    total = math.fsum(variance for variance, _ in parts)
    return max(1.0, total * total / doubt) if doubt > 0 else math.inf


def between_processes(repeats: Iterable[Sequence[ProcessRate]]) -> BetweenProcess:
    """Pooled over the configurations that were repeated, and shrunk towards the default while the repeats are few.

    The variance within is taken off first (DerSimonian and Laird 1986); the shrinkage is that of a scaled inverse
    chi-square prior (Smyth 2004): the mean of both variances, weighted by degrees of freedom.
    """
    squares, within, df = 0.0, 0.0, 0
    for processes in repeats:
        if len(processes) < 2:
            continue
        logs = [math.log(process.images_per_second) for process in processes]
        centre = math.fsum(logs) / len(logs)
        squares += math.fsum((value - centre) ** 2 for value in logs)
        within += (len(logs) - 1) * math.fsum(process.standard_error**2 for process in processes) / len(logs)
        df += len(logs) - 1
    own = max(0.0, squares - within)
    variance = (PRIOR_DF * DEFAULT_BETWEEN_PROCESS_SD**2 + own) / (PRIOR_DF + df)
    return BetweenProcess(sd=math.sqrt(variance), repeats=df)


def rate_ratio(after: RateEstimate, before: RateEstimate) -> Ratio:
    """`after` over `before`: variances of logarithms add. Both share one variance between processes."""
    value = after.images_per_second / before.images_per_second
    parts = [
        (after.within, after.within_df),
        (before.within, before.within_df),
        (after.between + before.between, min(after.between_df, before.between_df)),
    ]
    error = math.sqrt(math.fsum(variance for variance, _ in parts))
    reach = math.exp(student_t(combined_df(parts)) * error)
    return Ratio(value=value, low=value / reach, high=value * reach)


def family_widening(comparisons: int) -> float:
    """How much wider 95 % intervals must be for all of so many to hold together (Bonferroni)."""
    return statistics.NormalDist().inv_cdf(1 - 0.025 / comparisons) / INTERVAL_Z


def student_t(df: float) -> float:
    """Two-sided 95 % quantile of Student's t, interpolated in 1 / df as tables ask for; `df` is at least 1."""
    place = bisect_right(_T_DF, df)
    if place == len(_T_DF):
        lower, upper = 1 / _T_DF[-1], 0.0
        at_lower, at_upper = _T_VALUES[-1], INTERVAL_Z
    else:
        lower, upper = 1 / _T_DF[place - 1], 1 / _T_DF[place]
        at_lower, at_upper = _T_VALUES[place - 1], _T_VALUES[place]
    return at_upper + (at_lower - at_upper) * (1 / df - upper) / (lower - upper)


def _robust_sd(logs: Sequence[float]) -> float:
    if len(logs) == 1:
        return ONE_WINDOW_SD
    centre = statistics.median(logs)
    deviation = statistics.median(abs(value - centre) for value in logs)
    return 1.4826 * deviation if deviation > 0.0 else statistics.stdev(logs)
