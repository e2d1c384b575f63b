"""Intervals against simulated truth, and the figures of docs/measuring.md against the same simulation.

The simulation is seeded, so that nothing here can fail by chance. Standard errors of its figures: 0.8 points for the
coverage of 800 rates at 95 %, and 0.7 points for the share of 400 pairs that is called at 2 %.
"""

import math
import random
import re
from pathlib import Path

import pytest

from benchmarks.interval_simulation import (
    PROCESS_SDS,
    WINDOW_SDS,
    WINDOWS,
    Drift,
    Figures,
    World,
    documented_lines,
    documented_rows,
    figures,
    measured,
    processes,
    windows_of,
)
from orchestrator.comparison import Verdict, matched_pairs
from orchestrator.matching import Matching
from orchestrator.results import results_of
from tests.built_outcomes import completed, config, spec

ROOT = Path(__file__).resolve().parents[1]
LEAST_COVERAGE = 0.93
MOST_CALLED = 0.05


@pytest.fixture(scope="module")
def simulated() -> dict[World, list[Figures]]:
    return documented_rows()


def test_the_simulation_has_the_windows_that_a_trial_is_asked_for() -> None:
    assert WINDOWS == 30
    assert (min(PROCESS_SDS), max(PROCESS_SDS)) == (0.008, 0.02)


def test_an_interval_covers_the_true_rate_whatever_the_noise_and_however_many_runs(
    simulated: dict[World, list[Figures]],
) -> None:
    low = [(world, found.coverage) for world, runs in simulated.items() for found in runs]
    assert len(low) == len(WINDOW_SDS) * len(PROCESS_SDS) * 3
    assert [entry for entry in low if entry[1] < LEAST_COVERAGE] == []


def test_equal_configurations_are_rarely_called_different(simulated: dict[World, list[Figures]]) -> None:
    assert [world for world, runs in simulated.items() for found in runs if found.called > MOST_CALLED] == []


def test_more_runs_find_smaller_differences(simulated: dict[World, list[Figures]]) -> None:
    """An interval that is always wide would cover too: what 5 runs find is at most half of what one run does."""
    for one, three, five in simulated.values():
        assert one.detectable > 1.5 * three.detectable > 1.5 * five.detectable
        assert one.detectable > 2 * five.detectable


def test_the_variance_between_processes_is_estimated_from_repeats(simulated: dict[World, list[Figures]]) -> None:
    """From the stated 2 % towards the truth; window noise of 3 % is not taken for it."""
    for world, (one, three, five) in simulated.items():
        assert one.between_sd == pytest.approx(0.02)
        if world.window_sd <= 0.03:
            strays = math.hypot(world.process_sd, 0.02 / math.sqrt(12))
            assert min(strays, 0.02) * 0.85 < five.between_sd < max(strays * 1.15, three.between_sd)


@pytest.mark.parametrize("drift", [Drift.NONE, Drift.EVEN])
@pytest.mark.parametrize("window_sd", WINDOW_SDS)
def test_neither_a_steady_machine_nor_one_that_cools_down_changes_that(drift: Drift, window_sd: float) -> None:
    draw = random.Random(11)
    world = World(process_sd=0.02, window_sd=window_sd, drift=drift)
    pool = processes(draw, window_sd, 500)
    single, double = (figures(draw, world, pool, repeats, sweeps=100) for repeats in (1, 2))
    assert min(single.coverage, double.coverage) >= LEAST_COVERAGE
    assert single.called <= MOST_CALLED


@pytest.mark.parametrize("process_sd", [0.008, 0.02])
def test_of_400_pairs_measured_twice_at_most_20_get_a_verdict(process_sd: float) -> None:
    """Through the report's own matched pairs, each of two single processes of the same true rate."""
    draw = random.Random(5)
    outcomes = [
        completed(
            spec(config(batch_size=pair + 1, num_workers=workers)),
            throughput=measured(windows_of(draw, 0.03, level=7 + draw.gauss(0.0, process_sd))),
        )
        for pair in range(400)
        for workers in (0, 2)
    ]
    pairs = [pair for pair in matched_pairs(Matching(results_of(outcomes))) if pair.knob == "num_workers"]
    assert len(pairs) == 400
    assert sum(pair.verdict is not Verdict.NO_CLEAR_DIFFERENCE for pair in pairs) <= 20


def test_the_documented_figures_are_those_of_the_simulation(simulated: dict[World, list[Figures]]) -> None:
    text = (ROOT / "docs" / "measuring.md").read_text()
    documented = [numbers(line) for line in text.splitlines() if re.match(r"\| \d+ % \| \d\.\d % \|", line)]
    fresh = [numbers(line) for line in documented_lines(simulated)]
    assert len(documented) == len(fresh)
    for stated, found in zip(documented, fresh, strict=True):
        assert stated == pytest.approx(found, abs=0.15)  # a last digit may round the other way


def numbers(row: str) -> list[float]:
    return [float(cell) for cell in re.findall(r"[\d.]+", row)]
