"""In which order configurations are run again and again: in rounds, so that a drifting machine favours none.

A round runs every configuration once, in a random order of its own: a randomised complete block design (Fisher 1935).
What the machine does from round to round then falls on all alike, and within a round on any by chance alone.
"""

import random
from collections.abc import Sequence
from typing import Literal, TypeVar

Repeats = int | Literal["auto"]
"""Runs of each configuration; `auto`: one, and more where the first place is undecided."""

AUTO_REPEATS: Literal["auto"] = "auto"

Item = TypeVar("Item")


def rounds(items: Sequence[Item], repeats: Repeats, *, seed: int) -> list[tuple[int, Item]]:
    """(round, item) in the order to run them; the same for the same items and seed.

    A single round keeps the order of `items`. More rounds start with the same ones as fewer do.
    """
    if repeats == 1:
        return [(0, item) for item in items]
    numbers = range(1 if repeats == AUTO_REPEATS else repeats)
    return [(number, item) for number in numbers for item in _shuffled(items, f"{seed}, round {number}")]


def _shuffled(items: Sequence[Item], seed: str) -> list[Item]:
    return random.Random(seed).sample(items, len(items))  # noqa: S311 - an order, no secret
