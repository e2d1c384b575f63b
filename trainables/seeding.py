"""Random draws that follow from a name: seeds derived from numbers, and draws inside a data set made repeatable."""

import hashlib
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import torch

Generator = np.random.Generator | np.random.RandomState | random.Random | torch.Generator
"""A random generator object, of any of the libraries that data sets draw from."""


def derived_seed(*parts: int | str) -> int:
    """A seed from 0 to 2⁶³ − 1, the same in every process and on every machine for the same parts."""
    text = "/".join(str(part) for part in parts)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1


@contextmanager
def seeded_draws(seed: int, owned: Sequence[Generator] = ()) -> Iterator[None]:
    """Inside, the draws from the global CPU generators of torch, numpy and Python, and from the `owned` ones, follow
    from `seed`. Afterwards the global ones are as they were: a training process's own draws (dropout) are untouched.
    """
    torch_state = torch.default_generator.get_state()
    numpy_state = np.random.get_state()
    python_state = random.getstate()
    try:
        # `torch.manual_seed` would seed the GPUs' generators too, which dropout draws from
        torch.default_generator.manual_seed(seed)
        np.random.seed(seed % 2**32)
        random.seed(seed)
        for number, generator in enumerate(owned, start=1):
            _reseed(generator, derived_seed(seed, number))
        yield
    finally:
        torch.default_generator.set_state(torch_state)
        np.random.set_state(numpy_state)
        random.setstate(python_state)


def _reseed(generator: Generator, seed: int) -> None:
    match generator:
        case np.random.Generator():
            bits = generator.bit_generator
            bits.state = type(bits)(seed).state
        case np.random.RandomState():
            generator.seed(seed % 2**32)
        case random.Random():
            generator.seed(seed)
        case torch.Generator():
            generator.manual_seed(seed)
