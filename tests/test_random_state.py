"""A process's random generators, seeded, kept and put back."""

import random

import numpy as np
import pytest
import torch

from trainables.process_state import release_memory, restored_generators
from trainables.random_state import generator_states, restore_generators, seed_generators

CPU = torch.device("cpu")


def draws() -> tuple[float, float, float, float]:
    return random.random(), random.gauss(0, 1), float(np.random.normal()), float(torch.rand(()))


def test_the_same_seed_gives_the_same_draws_of_every_generator() -> None:
    with restored_generators(CPU):
        seed_generators(3)
        first = draws()
        seed_generators(4)
        other = draws()
        seed_generators(3)
        assert draws() == first
        assert all(a != b for a, b in zip(first, other, strict=True))


@pytest.mark.parametrize("seed", [0, 2**32 + 1, 2**63 - 1])
def test_any_seed_will_do(seed: int) -> None:
    with restored_generators(CPU):
        seed_generators(seed)


def test_draws_go_on_where_they_were_also_in_the_middle_of_a_pair_of_normal_ones() -> None:
    with restored_generators(CPU):
        seed_generators(0)
        draws()
        states = generator_states(CPU)
        expected = [draws(), draws()]
        seed_generators(9)
        restore_generators(states, CPU)
        assert [draws(), draws()] == expected


def test_the_generators_are_as_before_after_an_exception() -> None:
    def seed_and_raise() -> None:
        with restored_generators(CPU):
            seed_generators(0)
            raise KeyError

    before = generator_states(CPU)
    with pytest.raises(KeyError):
        seed_and_raise()
    after = generator_states(CPU)
    assert torch.equal(before.pop("torch"), after.pop("torch"))
    assert before == after


def test_a_device_that_answers_no_more_does_not_hide_what_happened() -> None:
    """A kernel that failed spoils its process: whatever asks the device afterwards fails too."""

    def fail() -> None:
        with restored_generators(CPU):
            raise KeyError("the first fault")

    def refuse(*_: object) -> None:
        raise RuntimeError("CUDA error: device-side assert triggered")

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(torch, "set_rng_state", refuse)
        patched.setattr(torch.accelerator, "empty_cache", refuse)
        with pytest.raises(KeyError, match="the first fault"):
            fail()
        release_memory()
