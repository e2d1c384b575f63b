"""One ratio from several that differ by more than their errors: what a knob does over configurations.

The normal random-effects model: the logarithm of each ratio is a mean, plus what is peculiar to its configuration
(standard deviation τ), plus its measurement error. With the two to ten ratios that a sweep has, no estimate of τ can be
relied on, and intervals that ignore this are too narrow (or, by Student's t with one degree of freedom, say nothing).
So τ is averaged over: a half-normal prior, which few values hardly move and many overrule (Friede, Röver, Wandel and
Neuenschwander 2017, "Meta-analysis of few small studies in orphan diseases"; Röver 2020, "Bayesian random-effects
meta-analysis using the bayesmeta R package").
"""

import math
import statistics
from collections.abc import Sequence

from orchestrator.statistics import INTERVAL_Z, Ratio

HETEROGENEITY_SD = 0.25
"""Scale of the prior of τ: two thirds of the effects of knobs differ by less than this between configurations."""

LARGEST_SD = 5 * HETEROGENEITY_SD
LEAST_SQUARED_ERROR = 1e-12
"""Ratios without any error would have no logarithm of it."""

STEPS = 100
"""Values of τ that the average is taken over, evenly spaced by their logarithms."""


def mean_ratio(ratios: Sequence[Ratio]) -> Ratio:
    """The geometric mean with its 95 % interval over configurations. One ratio is given back: it speaks for itself."""
    if len(ratios) == 1:
        return ratios[0]
    logs = [math.log(ratio.value) for ratio in ratios]
    mean = math.fsum(logs) / len(logs)
    half = _half_width(len(logs), statistics.variance(logs), statistics.fmean(map(squared_error, ratios)))
    return Ratio(value=math.exp(mean), low=math.exp(mean - half), high=math.exp(mean + half))


def pooled_ratio(ratios: Sequence[Ratio]) -> Ratio:
    """The geometric mean of ratios that differ by their errors alone, such as the repeats of one comparison."""
    mean = math.fsum(math.log(ratio.value) for ratio in ratios) / len(ratios)
    half = INTERVAL_Z * math.sqrt(math.fsum(map(squared_error, ratios))) / len(ratios)
    return Ratio(value=math.exp(mean), low=math.exp(mean - half), high=math.exp(mean + half))


def squared_error(ratio: Ratio) -> float:
    """Of its logarithm."""
    return (math.log(ratio.high / ratio.low) / (2 * INTERVAL_Z)) ** 2


def _half_width(count: int, variance: float, error: float) -> float:
    """Half of the 95 % interval of the mean of `count` logarithms: their own variance, and their mean squared error.

    Given τ, the mean is normal with variance (τ² + error) / count, and `variance` has count - 1 degrees of freedom
    about τ² + error; the interval is that of the mixture over τ.
    """
    error = max(error, LEAST_SQUARED_ERROR)
    smallest = math.sqrt(error) / 10
    growth = (max(LARGEST_SD, 2 * math.sqrt(variance)) / smallest) ** (1 / STEPS)
    taus = [smallest * growth**step for step in range(STEPS + 1)]
    variances = [tau**2 + error for tau in taus]
    scores = [
        math.log(tau) - (tau / HETEROGENEITY_SD) ** 2 / 2 - (count - 1) / 2 * (math.log(total) + variance / total)
        for tau, total in zip(taus, variances, strict=True)
    ]
    best = max(scores)
    weights = [math.exp(score - best) for score in scores]
    deviations = [math.sqrt(total / count) for total in variances]
    return _mixture_half_width(weights, deviations)


def _mixture_half_width(weights: Sequence[float], deviations: Sequence[float]) -> float:
    whole = math.fsum(weights)
    low, high = 0.0, 4 * max(deviations)
    for _ in range(40):
        middle = (low + high) / 2
        inside = math.fsum(
            weight * math.erf(middle / deviation / math.sqrt(2))
            for weight, deviation in zip(weights, deviations, strict=True)
        )
        low, high = (middle, high) if inside < 0.95 * whole else (low, middle)
    return high
