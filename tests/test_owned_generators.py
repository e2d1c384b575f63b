"""Random generators that a data set keeps for itself."""

import functools
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import Dataset, Subset
from torchvision.transforms import v2

from trainables.owned_generators import owned_generators

OF_THE_MODULE = np.random.default_rng(0)


class Items(Dataset[float]):
    """A data set of nothing; `parts` become its attributes."""

    def __init__(self, **parts: Any) -> None:
        vars(self).update(parts)

    def __len__(self) -> int:
        return 1


class WithClassAttribute(Items):
    draws = random.Random(0)


class NamesTheModules(Items):
    def __getitem__(self, index: int) -> float:
        return self.noise()

    def noise(self) -> float:
        return float(OF_THE_MODULE.random())


class Slotted:
    __slots__ = ("empty", "generator")

    def __init__(self) -> None:
        self.generator = torch.Generator()


def closing_over(generator: np.random.Generator) -> Callable[[float], float]:
    return lambda value: value + generator.random()


def added(value: float, generator: np.random.Generator) -> float:
    return value + generator.random()


OWN = np.random.default_rng(1)


@pytest.mark.parametrize(
    ("dataset", "count"),
    [
        (Items(g=OWN), 1),
        (Items(a=OWN, b=OWN), 1),
        (Items(a=OWN, b=np.random.RandomState(0), c=random.Random(0), d=torch.Generator()), 4),
        (Items(transforms=[1, {"crop": OWN}]), 1),
        (Subset(Items(dataset=Items(transform=Items(g=OWN))), [0]), 1),
        (Items(transform=v2.Compose([v2.ToImage(), v2.Lambda(closing_over(OWN))])), 1),
        (Items(transform=functools.partial(added, generator=OWN)), 1),
        (Items(transform=Items(g=OWN).__len__), 1),
        (WithClassAttribute(), 1),
        (NamesTheModules(), 1),
        (Slotted(), 1),
        (Items(), 0),
        (Items(numbers=list(range(10_000)), images=torch.zeros(3), table=np.zeros(3), module=np.random), 0),
    ],
)
def test_generators_are_found_wherever_a_data_set_keeps_them(dataset: object, count: int) -> None:
    assert len(owned_generators(dataset)) == count


def test_the_global_generators_are_not_owned() -> None:
    dataset = Items(
        torch=torch.default_generator, python=random.random, also=random.randint, numpy=np.random.mtrand._rand
    )
    assert owned_generators(dataset) == ()


def test_a_data_set_that_refers_to_itself_is_walked_once() -> None:
    dataset = Items(g=OWN)
    dataset.myself = dataset  # type: ignore[attr-defined]
    assert owned_generators(dataset) == (OWN,)


def test_generators_come_in_the_same_order_every_time() -> None:
    generators = [np.random.default_rng(seed) for seed in range(5)]
    dataset = Items(nested=Items(last=generators[4]), **{f"g{n}": generator for n, generator in enumerate(generators)})
    assert owned_generators(dataset) == owned_generators(dataset) == tuple(generators)
