"""Rounds: the order in which configurations are run again and again."""

import statistics

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.placement import Node, plan_placement
from orchestrator.rounds import AUTO_REPEATS, rounds
from tests.builders import a_spec


@given(st.lists(st.integers(), unique=True), st.integers(2, 6), st.integers(0, 99))
def test_every_round_has_every_item_once_and_rounds_follow_one_another(
    items: list[int], repeats: int, seed: int
) -> None:
    order = rounds(items, repeats, seed=seed)
    assert [number for number, _ in order] == [number for number in range(repeats) for _ in items]
    for number in range(repeats):
        assert sorted(item for place, item in order if place == number) == sorted(items)
    assert order == rounds(items, repeats, seed=seed)
    assert order[: -len(items) or None] == rounds(items, max(2, repeats - 1), seed=seed)[: len(items) * (repeats - 1)]


def test_a_single_round_keeps_the_order_of_the_space() -> None:
    assert rounds("cab", 1, seed=0) == [(0, "c"), (0, "a"), (0, "b")]


def test_another_round_and_another_seed_are_another_order() -> None:
    items = list(range(20))
    first, second, other = (
        [item for number, item in rounds(items, 2, seed=seed) if number == place]
        for seed, place in ((0, 0), (0, 1), (1, 0))
    )
    assert items != first != second != other != first


def test_automatic_repeats_begin_with_the_first_round_of_any_other_number() -> None:
    assert rounds("abcdef", AUTO_REPEATS, seed=3) == rounds("abcdef", 2, seed=3)[:6]


def test_no_place_in_a_round_is_anybodys() -> None:
    """Over many seeds each item is on average in the middle, so that a drift within rounds favours none."""
    places: dict[int, list[int]] = {item: [] for item in range(5)}
    for seed in range(400):
        for place, (_, item) in enumerate(rounds(range(5), 2, seed=seed)[:5]):
            places[item].append(place)
    assert all(abs(statistics.fmean(seen) - 2) < 0.25 for seen in places.values())


def test_placement_keeps_rounds_in_their_order() -> None:
    """Sorted by request, the repeats of a configuration would follow one another."""
    specs = [a_spec(num_workers=workers, replicate=number) for number in (0, 1) for workers in (0, 12, 4)]
    placement = plan_placement(specs, [Node(name="big", cpus=16, gpus=1), Node(name="small", cpus=2, gpus=4)])
    assert len(set(placement.requests.values())) > 1
    assert placement.in_order(specs) == specs
    assert [spec.config.num_workers for spec in placement.in_order(specs[:3])] == [0, 4, 12]
