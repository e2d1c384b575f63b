"""The order in which people expect the values of a knob: from the plain to the special, from small to large."""

import math
from collections.abc import Iterable

from trainables.specs import CompileMode, Precision

_PLAIN_FIRST = tuple(value.value for value in (*Precision, *CompileMode))


def value_order(value: object) -> tuple[float, str]:
    """A sort key: none first, then false, fp32, off and small numbers."""
    if value is None:
        return -math.inf, ""
    if isinstance(value, (int, float)):
        return float(value), ""
    text = str(value)
    return float(_PLAIN_FIRST.index(text) if text in _PLAIN_FIRST else len(_PLAIN_FIRST)), text


def knobs_order(knobs: Iterable[object]) -> tuple[tuple[float, str], ...]:
    """A sort key for the values of all knobs of one configuration."""
    return tuple(value_order(value) for value in knobs)
