"""The Pareto front of two quantities that are both better when larger."""

import math
from collections.abc import Sequence
from itertools import groupby


def pareto_front(points: Sequence[tuple[float, float]]) -> list[bool]:
    """For each point, whether no other is at least as large in both and larger in one. Takes n log n steps."""
    order = sorted(range(len(points)), key=lambda index: points[index], reverse=True)
    on_front = [False] * len(points)
    highest = -math.inf
    for _, group in groupby(order, key=lambda index: points[index][0]):
        equals = list(group)
        top = points[equals[0]][1]
        if top > highest:
            for index in equals:
                on_front[index] = points[index][1] == top
            highest = top
    return on_front
