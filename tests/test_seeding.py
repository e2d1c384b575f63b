"""Draws that follow from a name."""

import random

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from trainables.seeding import Generator, derived_seed, seeded_draws


def draws() -> tuple[float, float, float]:
    return torch.rand(1).item(), float(np.random.rand()), random.random()


def test_a_derived_seed_is_the_same_in_every_process() -> None:
    assert derived_seed(0, "training", 1, 2) == 5534610708570770568


@given(parts=st.lists(st.integers() | st.text(), min_size=1))
def test_a_derived_seed_fits_every_generator(parts: list[int | str]) -> None:
    assert 0 <= derived_seed(*parts) < 2**63


@given(first=st.tuples(st.integers(), st.integers()), second=st.tuples(st.integers(), st.integers()))
def test_different_numbers_give_different_seeds(first: tuple[int, int], second: tuple[int, int]) -> None:
    assert (derived_seed(*first) == derived_seed(*second)) == (first == second)


def test_draws_inside_follow_from_the_seed_alone() -> None:
    with seeded_draws(7):
        first = draws()
    draws()
    with seeded_draws(7):
        second = draws()
    with seeded_draws(8):
        third = draws()
    assert first == second
    assert len({*first, *third}) == 6


def test_the_global_generators_go_on_as_if_nothing_had_been_drawn() -> None:
    with torch.random.fork_rng():
        torch.manual_seed(1)
        np.random.seed(1)
        random.seed(1)
        undisturbed = draws()
        torch.manual_seed(1)
        np.random.seed(1)
        random.seed(1)
        with pytest.raises(KeyError, match="inside"):
            draw_and_raise()
        assert draws() == undisturbed


def draw_and_raise() -> None:
    with seeded_draws(7):
        draws()
        raise KeyError("inside")


@pytest.mark.parametrize(
    ("generator", "draw"),
    [
        (np.random.default_rng(0), lambda g: g.integers(1 << 40)),
        (np.random.Generator(np.random.MT19937(0)), lambda g: g.integers(1 << 40)),
        (np.random.RandomState(0), lambda g: g.rand()),
        (random.Random(0), lambda g: g.random()),
        (torch.Generator(), lambda g: torch.rand(1, generator=g).item()),
    ],
)
def test_an_owned_generator_of_any_kind_is_seeded_anew(generator: Generator, draw: object) -> None:
    assert callable(draw)
    seen = []
    for seed in (5, 5, 6):
        with seeded_draws(seed, [generator]):
            seen.append((draw(generator), draw(generator)))
    assert seen[0] == seen[1] != seen[2]
    assert seen[0][0] != seen[0][1]


def test_two_owned_generators_do_not_draw_the_same() -> None:
    one, other = np.random.default_rng(0), np.random.default_rng(0)
    with seeded_draws(5, [one, other]):
        assert one.random() != other.random()
