"""What a knob takes in a space: one value, a list, or values drawn from a distribution."""

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from trainables.faults import Faults, did_you_mean, given
from trainables.knob_values import KNOB_RULES, KnobKind, number, parse_knob
from trainables.yaml_fields import read_value
from trainables.yaml_reader import Node, plain

SIGNIFICANT_DIGITS = 6
"""Of a drawn number."""

DISTRIBUTIONS: Mapping[str, str] = {
    "uniform": "[low, high]: any number between, both included",
    "loguniform": "[low, high]: any number between, both included, its logarithm uniform; low above 0",
    "randint": "[low, high]: a whole number from low to high - 1",
    "choice": "[a, b, …]: one of the values, each as likely as the next",
}
"""Each distribution and what its list means, as messages and the documentation say it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixed:
    """The same value in every configuration, which the explicit ones inherit."""

    value: Any

    @property
    def values(self) -> tuple[Any, ...]:
        return (self.value,)

    def asked(self) -> Any:
        return self.value


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """Every value once, however often it was written."""

    values: tuple[Any, ...]
    """As written."""

    @property
    def distinct(self) -> tuple[Any, ...]:
        return tuple(dict.fromkeys(self.values))

    def asked(self) -> Any:
        return list(self.values)

    def draw(self, generator: random.Random) -> Any:
        return generator.choice(self.distinct)


@dataclass(frozen=True, slots=True, kw_only=True)
class Uniform:
    low: float
    high: float
    logarithmic: bool

    def asked(self) -> Any:
        return {"loguniform" if self.logarithmic else "uniform": [self.low, self.high]}

    def draw(self, generator: random.Random) -> float:
        if self.logarithmic:
            drawn = math.exp(generator.uniform(math.log(self.low), math.log(self.high)))
        else:
            drawn = generator.uniform(self.low, self.high)
        return min(max(float(f"{drawn:.{SIGNIFICANT_DIGITS}g}"), self.low), self.high)


@dataclass(frozen=True, slots=True, kw_only=True)
class RandInt:
    low: int
    high: int
    """Not included."""

    def asked(self) -> Any:
        return {"randint": [self.low, self.high]}

    def draw(self, generator: random.Random) -> int:
        return generator.randrange(self.low, self.high)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    values: tuple[Any, ...]

    def asked(self) -> Any:
        return {"choice": list(self.values)}

    def draw(self, generator: random.Random) -> Any:
        return generator.choice(tuple(dict.fromkeys(self.values)))


Distribution = Uniform | RandInt | Choice
KnobValues = Fixed | Grid | Distribution


def read_knob(name: str, node: Node, faults: Faults) -> KnobValues:
    """The values of the knob `name` (a knob there is). Where they are refused, which is then a fault, a stand-in."""
    key = f"knobs.{name}"
    if isinstance(node.value, tuple):
        return Grid(values=_values(name, key, node, faults))
    if isinstance(node.value, Mapping):
        return _distribution(name, key, node.value, node, faults)
    return Fixed(value=read_value(node, key, partial(parse_knob, name), None, faults))


def _values(name: str, key: str, node: Node, faults: Faults) -> tuple[Any, ...]:
    if not isinstance(node.value, tuple) or not node.value:
        faults.add(node.place, key, f"must be a list of at least one value, got {given(plain(node))}")
        return ()
    return tuple(read_value(item, key, partial(parse_knob, name), None, faults) for item in node.value)


def _distribution(name: str, key: str, entries: Mapping[str, Node], node: Node, faults: Faults) -> KnobValues:
    kind, inner = next(iter(entries.items()), ("", node))
    if len(entries) != 1 or kind not in DISTRIBUTIONS:
        words = ", ".join(entries) or "nothing"
        nearest = did_you_mean(kind, DISTRIBUTIONS)
        faults.add(node.place, key, f"must have exactly one of {', '.join(DISTRIBUTIONS)}, got {words}{nearest}")
        return Fixed(value=None)
    if kind == "choice":
        return Choice(values=_values(name, f"{key}.choice", inner, faults))
    stand_in: KnobValues = Fixed(value=None)
    return read_value(inner, f"{key}.{kind}", partial(_range, name, kind), stand_in, faults)


def _range(name: str, kind: str, value: object) -> KnobValues:
    """Raises `ValueError`."""
    needed = KnobKind.WHOLE if kind == "randint" else KnobKind.NUMBER
    if KNOB_RULES[name].kind is not needed:
        fitting = ", ".join(knob for knob, rule in KNOB_RULES.items() if rule.kind is needed)
        raise ValueError(
            f"is for {fitting}, and {name} is a {KNOB_RULES[name].kind.value}; list its values, or use choice"
        )
    if not isinstance(value, list) or len(value) != 2:
        raise ValueError(f"must be [low, high], got {given(value)}")
    low, high = (_bound(name, kind, end, bound) for end, bound in zip(("low", "high"), value, strict=True))
    if low >= high:
        raise ValueError(f"must have low below high, got [{low}, {high}]; write a single value for one value")
    if kind == "randint":
        return RandInt(low=int(low), high=int(high))
    if kind == "loguniform" and low <= 0:
        raise ValueError(f"must have low above 0, got {low}")
    return Uniform(low=low, high=high, logarithmic=kind == "loguniform")


def _bound(name: str, kind: str, end: str, bound: object) -> float:
    try:
        value: float = parse_knob(name, number(bound) if kind != "randint" else bound)
    except ValueError as error:
        raise ValueError(f"{end} {error}") from None
    return value
