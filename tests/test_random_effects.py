"""One ratio from several: the geometric mean, with an interval over configurations."""

import math
import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.random_effects import mean_ratio
from orchestrator.statistics import INTERVAL_Z, Ratio

ERROR = math.sqrt(2) * 0.02
"""Of a pair of single processes."""


def ratio(value: float, error: float = ERROR) -> Ratio:
    reach = math.exp(INTERVAL_Z * error)
    return Ratio(value=value, low=value / reach, high=value * reach)


def inverse(one: Ratio) -> Ratio:
    return Ratio(value=1 / one.value, low=1 / one.high, high=1 / one.low)


def half_width(one: Ratio) -> float:
    return math.log(one.high / one.low) / 2


def close(one: Ratio, other: Ratio) -> bool:
    return (one.value, one.low, one.high) == pytest.approx((other.value, other.low, other.high))


def test_one_ratio_speaks_for_itself() -> None:
    assert mean_ratio([ratio(1.3)]) == ratio(1.3)


def test_the_mean_is_geometric() -> None:
    assert mean_ratio([ratio(0.5), ratio(2.0)]).value == pytest.approx(1.0)
    assert mean_ratio([ratio(0.70), ratio(0.54)]).value == pytest.approx(math.sqrt(0.70 * 0.54))


def test_ratios_that_agree_make_each_other_surer_and_those_that_do_not_less_sure() -> None:
    alike, apart = [ratio(1.1)] * 4, [ratio(0.8), ratio(1.5), ratio(0.9), ratio(1.35)]
    assert mean_ratio(alike).low > 1.03
    assert half_width(mean_ratio(apart)) > 4 * half_width(mean_ratio(alike))
    assert half_width(mean_ratio(alike * 4)) < half_width(mean_ratio(alike)) / 3


def test_two_ratios_far_from_one_are_clear_and_two_near_it_are_not() -> None:
    """Student's t with one degree of freedom would call neither clear."""
    assert not mean_ratio([ratio(0.20), ratio(0.13)]).is_tie
    assert mean_ratio([ratio(1.10), ratio(1.12)]).is_tie


def test_ratios_without_any_error_can_be_taken_together() -> None:
    exact = Ratio(value=2.0, low=2.0, high=2.0)
    assert mean_ratio([exact, exact]).value == pytest.approx(2.0)


ratios = st.builds(ratio, st.floats(0.05, 20), st.floats(0.001, 0.3))


@given(st.lists(ratios, min_size=1, max_size=12), st.randoms(use_true_random=False))
def test_the_order_does_not_matter(some: list[Ratio], shuffle: random.Random) -> None:
    before = mean_ratio(some)
    shuffled = list(some)
    shuffle.shuffle(shuffled)
    assert close(mean_ratio(shuffled), before)


@given(st.lists(ratios, min_size=1, max_size=12))
def test_inverse_ratios_have_the_inverse_mean(some: list[Ratio]) -> None:
    assert close(mean_ratio([inverse(one) for one in some]), inverse(mean_ratio(some)))


@given(st.lists(ratios, min_size=1, max_size=12))
def test_the_mean_lies_within_its_interval_and_the_values(some: list[Ratio]) -> None:
    found = mean_ratio(some)
    values = [one.value for one in some]
    assert found.low < found.value < found.high
    assert min(values) * (1 - 1e-9) <= found.value <= max(values) * (1 + 1e-9)


@pytest.mark.parametrize(
    ("heterogeneity", "count", "least"),
    [(0.0, 2, 0.98), (0.0, 8, 0.95), (0.1, 3, 0.94), (0.1, 8, 0.93), (0.2, 2, 0.93), (0.2, 4, 0.91), (0.4, 8, 0.88)],
)
def test_the_interval_covers_the_mean_over_configurations(heterogeneity: float, count: int, least: float) -> None:
    """Of 200 sweeps each; docs/measuring.md has the figures of longer simulations."""
    draw = random.Random(1)
    covered = []
    for _ in range(200):
        logs = [draw.gauss(0.0, math.hypot(heterogeneity, ERROR)) for _ in range(count)]
        found = mean_ratio([ratio(math.exp(log)) for log in logs])
        covered.append(found.is_tie)
    assert statistics.fmean(covered) >= least
