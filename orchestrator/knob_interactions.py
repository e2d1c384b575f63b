"""Where the effect of a knob depends on the value of another: bf16 that helps less once compiled.

Two matched pairs that change the same knob in the same way, and differ from each other in one other knob alone, make a
contrast: the speed-up at one value of the other knob over that at another. Four trials, each with its error, and
nothing else differs. A contrast is told from noise by its measurement errors, among as many as were looked at.
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from orchestrator.comparison import ALL_PAIRS_UP_TO, MatchedPair
from orchestrator.knob_effects import KnobEffect, mean_speedup
from orchestrator.knob_order import value_order
from orchestrator.random_effects import pooled_ratio
from orchestrator.results import ComparisonKey
from orchestrator.statistics import Ratio
from trainables.knob_values import KNOB_RULES, KnobKind
from trainables.specs import KNOBS

WORTH_KNOWING = 1.1
"""A speed-up that depends on another knob by less changes no decision."""

_CONDITIONS = ("num_workers", "batch_size", "lr")
"""Knobs by which people tell apart what the others do, and not the reverse."""

EXPLAINED = (*(knob for knob in KNOBS if knob not in _CONDITIONS), *_CONDITIONS)
"""Of two knobs, the effect of the one that is first here is told by the value of the other."""

Group = Mapping[object, MatchedPair]
"""Pairs that differ in one other knob alone, by its value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """The effect at one value of the other knob."""

    value: object
    speedup: Ratio
    pairs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """The knob makes training clearly faster on one side alone."""

    value: object
    """The outermost value at which it does."""
    upwards: bool
    """Whether it does from that value up, rather than up to it."""
    inside: Ratio
    outside: Ratio


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Interaction:
    effect: KnobEffect
    by: str
    """The other knob."""
    first: Level
    second: Level
    """The two values of the other knob between which the effect differs most clearly."""
    contrast: Ratio
    """The speed-up at `second` over that at `first`, over the contrasts that were run; by measurement error alone."""
    contrasts: int
    threshold: Threshold | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Candidate:
    effect: KnobEffect
    by: str
    first: object
    second: object
    contrast: Ratio
    groups: tuple[Group, ...]


def interactions(effects: Sequence[KnobEffect]) -> tuple[Interaction, ...]:
    """Those that are clear among all that were looked at and worth knowing; of each two knobs the clearest; clearest
    first.
    """
    by_key: defaultdict[ComparisonKey, list[_Candidate]] = defaultdict(list)
    for effect in effects:
        by_key[effect.key] += _candidates(effect)
    clearest: dict[object, _Candidate] = {}
    for looked_at in by_key.values():
        for found in looked_at:
            if not found.contrast.excludes_one_among(len(looked_at)) or not _is_worth_knowing(found.contrast):
                continue
            two = (found.effect.key, found.effect.knob, found.by)
            if two not in clearest or _clearness(found) > _clearness(clearest[two]):
                clearest[two] = found
    return tuple(_interaction(found) for found in sorted(clearest.values(), key=_clearness, reverse=True))


def _candidates(effect: KnobEffect) -> Iterator[_Candidate]:
    for by in EXPLAINED[EXPLAINED.index(effect.knob) + 1 :]:
        groups = _groups(effect, by)
        values = sorted({value for group in groups for value in group}, key=value_order)
        everything = list(combinations(values, 2))
        chosen = everything if len(values) <= ALL_PAIRS_UP_TO else [(values[0], value) for value in values[1:]]
        for first, second in chosen:
            both = tuple(group for group in groups if first in group and second in group)
            if both:
                contrast = pooled_ratio([_contrast(group[first].speedup, group[second].speedup) for group in both])
                yield _Candidate(effect=effect, by=by, first=first, second=second, contrast=contrast, groups=both)


def _groups(effect: KnobEffect, by: str) -> list[Group]:
    """Of the effect's pairs, those with several values of `by`."""
    places = {KNOBS.index(effect.knob), KNOBS.index(by)}
    found: defaultdict[object, dict[object, MatchedPair]] = defaultdict(dict)
    for pair in effect.pairs:
        others = tuple(value for place, value in enumerate(pair.before.knobs) if place not in places)
        found[pair.before.seed_key, others][pair.before.knobs[KNOBS.index(by)]] = pair
    return [group for group in found.values() if len(group) > 1]


def _contrast(first: Ratio, second: Ratio) -> Ratio:
    """Second over first; the errors, of logarithms, combine in quadrature."""
    value = second.value / first.value
    reach = math.exp(math.hypot(math.log(first.high / first.value), math.log(second.high / second.value)))
    return Ratio(value=value, low=value / reach, high=value * reach)


def _is_worth_knowing(contrast: Ratio) -> bool:
    return abs(math.log(contrast.value)) >= math.log(WORTH_KNOWING)


def _clearness(found: _Candidate) -> float:
    return found.contrast.standard_errors


def _interaction(found: _Candidate) -> Interaction:
    values = sorted({value for group in found.groups for value in group}, key=value_order)
    levels = {value: _level(value, found.groups) for value in values}
    return Interaction(
        effect=found.effect,
        by=found.by,
        first=levels[found.first],
        second=levels[found.second],
        contrast=found.contrast,
        contrasts=len(found.groups),
        threshold=_threshold(found, list(levels.values())),
    )


def _level(value: object, groups: Sequence[Group]) -> Level:
    pairs = [group[value] for group in groups if value in group]
    return Level(value=value, speedup=mean_speedup(pairs), pairs=len(pairs))


def _threshold(found: _Candidate, levels: Sequence[Level]) -> Threshold | None:
    """Only where three or more values have an order, and those that help are all on one side of those that do not."""
    helps = [level.speedup.low > 1 for level in levels]
    changes = [place for place in range(1, len(levels)) if helps[place] != helps[place - 1]]
    has_order = KNOB_RULES[found.by].kind in (KnobKind.WHOLE, KnobKind.NUMBER)
    if len(levels) < 3 or not has_order or len(changes) != 1:
        return None
    upwards = helps[-1]
    inside = [level.value for level, own in zip(levels, helps, strict=True) if own]
    if (found.first in inside) == (found.second in inside):
        return None
    return Threshold(
        value=inside[0] if upwards else inside[-1],
        upwards=upwards,
        inside=_over(inside, found.groups),
        outside=_over([level.value for level in levels if level.value not in inside], found.groups),
    )


def _over(values: Sequence[object], groups: Sequence[Group]) -> Ratio:
    return mean_speedup(group[value] for group in groups for value in values if value in group)
