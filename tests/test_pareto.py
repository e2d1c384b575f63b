"""The Pareto front."""

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.pareto import pareto_front

points = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=12)


def dominated(point: tuple[float, float], others: list[tuple[float, float]]) -> bool:
    return any(other[0] >= point[0] and other[1] >= point[1] and other != point for other in others)


@given(points)
def test_exactly_what_nothing_beats_in_both_is_on_the_front(given_points: list[tuple[float, float]]) -> None:
    assert pareto_front(given_points) == [not dominated(point, given_points) for point in given_points]


def test_equal_points_are_on_the_front_together() -> None:
    assert pareto_front([(2, 1), (2, 1), (1, 2), (1, 1)]) == [True, True, True, False]
