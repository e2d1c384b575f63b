"""Matched pairs: two completed trials that differ in exactly one knob, compared in speed and accuracy."""

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations

from orchestrator.accuracy_statistics import difference_noise
from orchestrator.bottleneck import hides_compute
from orchestrator.knob_order import value_order
from orchestrator.matching import Matching, is_comparable
from orchestrator.results import Result
from orchestrator.statistics import Ratio, family_widening, rate_ratio
from trainables.specs import KNOBS

ALL_PAIRS_UP_TO = 4
"""Values of a knob that are all paired with each other; of more, each is paired with the first alone."""

COMPUTE_KNOBS = ("precision", "compile")
"""Knobs that change compute alone: where the loop waits for data, the loop does not show what they do."""


class Verdict(StrEnum):
    FASTER = "faster"
    SLOWER = "slower"
    NO_CLEAR_DIFFERENCE = "no_clear_difference"
    """The 95 % interval of the speed-up contains 1, or both trials wait for data and differ in compute alone."""
    COSTS_ACCURACY = "costs_accuracy"
    """Faster, and less accurate by more than `accuracy_noise`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaledLrTwin:
    """The trial at the pair's second batch size whose learning rate was scaled with it: the fair comparison."""

    result: Result
    rule: str
    """`linear` (lr times the ratio of batch sizes) or `sqrt` (times its square root)."""
    accuracy_change: float | None
    """Against the pair's first trial."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MatchedPair:
    """Same data, model, protocol, device, seed and replicate; one knob differs. `after` against `before`."""

    knob: str
    before: Result
    after: Result
    before_value: object
    after_value: object
    speedup: Ratio
    accuracy_change: float | None
    accuracy_noise: float | None
    """Half of the 95 % interval that sampling alone gives a difference of the two; None where it is not known."""
    verdict: Verdict
    is_hidden: bool = False
    """Whether both wait for data and differ in compute alone, so that the speed-up says nothing of the knob."""
    scaled_lr: ScaledLrTwin | None = None


def matched_pairs(matching: Matching) -> tuple[MatchedPair, ...]:
    """Knob by knob, in an order that does not depend on that of the results; the cost grows as their number does."""
    return tuple(
        _pair(matching, knob, before, after)
        for place, knob in enumerate(KNOBS)
        for before, after in _matched(matching, place)
    )


def is_loss(accuracy_change: float | None, accuracy_noise: float | None, comparisons: int = 1) -> bool:
    """Whether accuracy fell by more than chance explains, among so many comparisons; unknown noise proves nothing."""
    if accuracy_change is None or accuracy_noise is None:
        return False
    return accuracy_change < -accuracy_noise * family_widening(comparisons)


def verdict_of(speedup: Ratio, *, costs_accuracy: bool) -> Verdict:
    if speedup.is_tie:
        return Verdict.NO_CLEAR_DIFFERENCE
    if speedup.value < 1:
        return Verdict.SLOWER
    return Verdict.COSTS_ACCURACY if costs_accuracy else Verdict.FASTER


def accuracy_difference(matching: Matching, before: Result, after: Result) -> tuple[float | None, float | None]:
    """The change, and its noise; None where the accuracies are not known."""
    if before.accuracy is None or after.accuracy is None:
        return None, None
    images, seed_sd = before.independent_images, matching.seed_sd[before.key]
    noise = difference_noise(before.accuracy, after.accuracy, images, seed_sd=seed_sd)
    return after.accuracy - before.accuracy, noise


def _matched(matching: Matching, place: int) -> Iterator[tuple[Result, Result]]:
    groups: defaultdict[object, list[Result]] = defaultdict(list)
    for result in matching.results:
        if is_comparable(result):
            others = result.knobs[:place] + result.knobs[place + 1 :]
            groups[result.key, result.seed_key, others].append(result)
    for group in groups.values():
        group.sort(key=lambda result: value_order(result.knobs[place]))
        if len(group) <= ALL_PAIRS_UP_TO:
            yield from combinations(group, 2)
        else:
            yield from ((group[0], after) for after in group[1:])


def _pair(matching: Matching, knob: str, before: Result, after: Result) -> MatchedPair:
    place = KNOBS.index(knob)
    speedup = rate_ratio(matching.rate(after), matching.rate(before))
    change, noise = accuracy_difference(matching, before, after)
    is_hidden = knob in COMPUTE_KNOBS and hides_compute(before.loop, after.loop)
    return MatchedPair(
        knob=knob,
        before=before,
        after=after,
        before_value=before.knobs[place],
        after_value=after.knobs[place],
        speedup=speedup,
        accuracy_change=change,
        accuracy_noise=noise,
        verdict=Verdict.NO_CLEAR_DIFFERENCE
        if is_hidden
        else verdict_of(speedup, costs_accuracy=is_loss(change, noise)),
        is_hidden=is_hidden,
        scaled_lr=_scaled_lr_twin(matching, before, after) if knob == "batch_size" else None,
    )


def _scaled_lr_twin(matching: Matching, before: Result, after: Result) -> ScaledLrTwin | None:
    """Linear scaling (Goyal et al. 2017) where it was run, else by the square root (Malladi et al. 2022, for Adam)."""
    config = before.outcome.spec.config
    ratio = after.outcome.spec.config.batch_size / config.batch_size
    for rule, factor in (("linear", ratio), ("sqrt", math.sqrt(ratio))):
        twin = matching.twin_with_lr(after, config.lr * factor)
        if twin is not None and twin is not after:
            change, _ = accuracy_difference(matching, before, twin)
            return ScaledLrTwin(result=twin, rule=rule, accuracy_change=change)
    return None
