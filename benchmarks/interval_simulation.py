"""Simulated sweeps whose true rates are known, and what the intervals of `orchestrator.statistics` make of them.

All noise is on the natural logarithm of a rate, as in `orchestrator.statistics`. A process has an effect of its own
(normal, `process_sd`); its windows scatter around that as an AR(1) series with `WINDOW_CORRELATION` and drift by
`DRIFT_WITHIN` from the first to the last, evenly; and the machine drifts over the sweep, evenly or as a random walk.
The truth is the rate of a configuration averaged over all processes and over the period of the sweep.
"""

import math
import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from orchestrator.statistics import (
    BetweenProcess,
    ProcessRate,
    RateEstimate,
    between_processes,
    estimate_rate,
    process_rate,
    rate_ratio,
)
from trainables.measurements import ThroughputMeasurement
from trainables.specs import MeasurementProtocol

WINDOWS = MeasurementProtocol(epochs=1).windows
WINDOW_CORRELATION = 0.5
WINDOW_SDS = (0.01, 0.03, 0.1)
PROCESS_SDS = (0.008, 0.01, 0.015, 0.02)
REPEATS = (1, 2, 3, 5)
CONFIGURATIONS = 8
DRIFT_WITHIN = 0.01
DRIFT = 0.02
"""Of the machine over the sweep: from the first to the last where it is even; a random walk strays as far in its sd."""

POOL = 1000
"""Processes whose windows are drawn; each run of a sweep takes one of them to a level of its own."""


class Drift(StrEnum):
    NONE = "none"
    EVEN = "even"
    WALK = "random walk"


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """How noisy a machine is."""

    process_sd: float
    window_sd: float
    drift: Drift


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What the intervals made of many sweeps of one world. Fractions, and for the last one a ratio less 1."""

    coverage: float
    """Of the truth by the 95 % interval of a rate."""
    called: float
    """Of pairs of equal configurations, how many are called faster or slower."""
    half_width: float
    """Median half of the interval of a rate, relative."""
    detectable: float
    """How much faster one must be to be called faster 80 times in 100."""
    between_sd: float
    """Root mean square of the standard deviation between processes that the sweep used."""


def windows_of(draw: random.Random, window_sd: float, *, level: float = 0.0, count: int = WINDOWS) -> list[float]:
    """Logarithms of the rates of one process's windows: AR(1) noise, and an even drift around `level`."""
    fresh = window_sd * math.sqrt(1 - WINDOW_CORRELATION**2)
    state, logs = draw.gauss(0.0, window_sd), []
    for index in range(count):
        logs.append(level + state + DRIFT_WITHIN * (0.5 - index / max(1, count - 1)))
        state = WINDOW_CORRELATION * state + draw.gauss(0.0, fresh)
    return logs


def measured(logs: Sequence[float]) -> ThroughputMeasurement:
    return ThroughputMeasurement(
        window_images=(1000,) * len(logs),
        window_seconds=tuple(1000 * math.exp(-value) for value in logs),
        measured_on="training",
    )


def processes(draw: random.Random, window_sd: float, how_many: int) -> list[ProcessRate]:
    """Processes of true rate 1 and no effect of their own: `shifted` gives them one."""
    return [process_rate(measured(windows_of(draw, window_sd))) for _ in range(how_many)]


def shifted(process: ProcessRate, level: float) -> ProcessRate:
    """The same windows on another level: every rate of the process times exp(level)."""
    return replace(process, images_per_second=process.images_per_second * math.exp(level))


def drift_path(draw: random.Random, drift: Drift, slots: int) -> list[float]:
    """The machine's state in each slot of the sweep, with a mean of 0 over the sweep."""
    if drift is Drift.NONE or slots < 2:
        return [0.0] * slots
    if drift is Drift.EVEN:
        return [DRIFT * (0.5 - slot / (slots - 1)) for slot in range(slots)]
    state, path = 0.0, []
    for _ in range(slots):
        path.append(state)
        state += draw.gauss(0.0, 1.0)
    mean = statistics.fmean(path)
    sd = math.sqrt(statistics.fmean((value - mean) ** 2 for value in path))
    return [DRIFT / math.sqrt(12) * (value - mean) / sd for value in path]


def sweep(
    draw: random.Random, world: World, pool: Sequence[ProcessRate], repeats: int
) -> tuple[list[RateEstimate], BetweenProcess]:
    """One sweep of `CONFIGURATIONS` equal configurations in rounds, each in a random order."""
    path = iter(drift_path(draw, world.drift, CONFIGURATIONS * repeats))
    runs: list[list[ProcessRate]] = [[] for _ in range(CONFIGURATIONS)]
    for _ in range(repeats):
        for configuration in draw.sample(range(CONFIGURATIONS), CONFIGURATIONS):
            level = draw.gauss(0.0, world.process_sd) + next(path)
            runs[configuration].append(shifted(draw.choice(pool), level))
    between = between_processes(runs)
    return [estimate_rate(run, between) for run in runs], between


def figures(draw: random.Random, world: World, pool: Sequence[ProcessRate], repeats: int, sweeps: int) -> Figures:
    """From so many sweeps; of each, every configuration is covered or not and neighbours are A/A pairs."""
    covered, called, widths, needed, between_squares = 0, 0, [], [], []
    for _ in range(sweeps):
        rates, between = sweep(draw, world, pool, repeats)
        covered += sum(rate.low <= 1.0 <= rate.high for rate in rates)
        widths += [math.sqrt(rate.high / rate.low) - 1 for rate in rates]
        between_squares.append(between.sd**2)
        for after, before in zip(rates[::2], rates[1::2], strict=True):
            ratio = rate_ratio(after, before)
            called += not ratio.is_tie
            # the true ratio does not change the errors: it must lift this pair's lower end above 1
            needed.append(1 / ratio.low)
    return Figures(
        coverage=covered / (sweeps * CONFIGURATIONS),
        called=called / (sweeps * CONFIGURATIONS / 2),
        half_width=statistics.median(widths),
        detectable=statistics.quantiles(needed, n=10)[7] - 1,
        between_sd=math.sqrt(statistics.fmean(between_squares)),
    )


def table(seed: int, *, repeats: Sequence[int], sweeps: int, drifts: Sequence[Drift]) -> dict[World, list[Figures]]:
    """For every noise of windows and processes and every drift, one entry for each number of repeats."""
    draw, found = random.Random(seed), {}  # noqa: S311 - seeded noise, no secret
    for window_sd in WINDOW_SDS:
        pool = processes(draw, window_sd, POOL)
        for drift in drifts:
            for process_sd in PROCESS_SDS:
                world = World(process_sd=process_sd, window_sd=window_sd, drift=drift)
                found[world] = [figures(draw, world, pool, count, sweeps) for count in repeats]
    return found


def documented_rows(seed: int = 2, sweeps: int = 100) -> dict[World, list[Figures]]:
    """What docs/measuring.md shows, for 1, 3 and 5 runs of each configuration while the machine strays."""
    return table(seed, repeats=(1, 3, 5), sweeps=sweeps, drifts=[Drift.WALK])


def documented_lines(rows: dict[World, list[Figures]]) -> list[str]:
    """The rows of the table in docs/measuring.md, in percent."""
    lines = []
    for world, found in rows.items():
        cells = [f"{world.window_sd:.0%}", f"{world.process_sd:.1%}"]
        cells += [f"{one.coverage:.1%}" for one in found]
        cells += [f"{one.called:.1%}" for one in found]
        cells += [f"{one.detectable:.1%}" for one in found]
        lines.append(f"| {' | '.join(cells)} |".replace("%", " %"))
    return lines
