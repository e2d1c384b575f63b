"""How far accuracies move by chance."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.accuracy_statistics import difference_noise, pooled_seed_sd, sampling_error


@pytest.mark.parametrize(("accuracy", "images", "points"), [(0.87, 10_000, 0.34), (0.96, 360, 1.0), (0.5, 100, 4.9)])
def test_the_sampling_error_is_the_binomial_one(accuracy: float, images: int, points: float) -> None:
    assert 100 * sampling_error(accuracy, images) == pytest.approx(points, abs=0.1)


@given(st.floats(0, 1), st.integers(1, 10**7))
def test_no_accuracy_is_certain_not_even_a_perfect_one(accuracy: float, images: int) -> None:
    assert 0.0 < sampling_error(accuracy, images) < 0.5


def test_the_noise_of_a_difference_is_the_larger_of_sampling_and_seeds() -> None:
    sampled = difference_noise(0.9, 0.9, 10_000, seed_sd=None)
    assert sampled == pytest.approx(1.96 * 0.003 * 2**0.5, rel=0.01)
    assert difference_noise(0.9, 0.9, 10_000, seed_sd=0.001) == sampled
    assert difference_noise(0.9, 0.9, 10_000, seed_sd=0.01) == pytest.approx(1.96 * 0.01 * 2**0.5, rel=1e-3)


def test_paired_seeds_tell_their_own_noise() -> None:
    """t(2) x 0.01 / sqrt(3), whatever single seeds scatter by."""
    noise = difference_noise(0.9, 0.9, None, seed_sd=0.5, differences=[-0.01, 0.0, 0.01])
    assert noise == pytest.approx(4.303 * 0.01 / 3**0.5)


def test_a_difference_of_which_nothing_tells_the_noise_has_none() -> None:
    assert difference_noise(0.9, 0.8, None, seed_sd=None) is None


def test_seed_noise_is_pooled_over_the_configurations_with_several_seeds() -> None:
    assert pooled_seed_sd([[0.9], []]) is None
    assert pooled_seed_sd([[0.9, 0.92], [0.5, 0.52], [0.1]]) == pytest.approx(0.02 / 2**0.5)
