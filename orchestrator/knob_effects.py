"""What each knob does: one effect for each change of its value, over all matched pairs that make this change."""

import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from orchestrator.accuracy_statistics import difference_noise
from orchestrator.bottleneck import Bottleneck
from orchestrator.comparison import MatchedPair, Verdict, is_loss, verdict_of
from orchestrator.knob_order import value_order
from orchestrator.matching import Matching
from orchestrator.random_effects import mean_ratio, pooled_ratio
from orchestrator.results import ComparisonKey, Result
from orchestrator.statistics import Ratio
from trainables.specs import KNOBS


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KnobEffect:
    """`after_value` against `before_value`; all else is equal within each pair."""

    key: ComparisonKey
    knob: str
    before_value: object
    after_value: object
    pairs: tuple[MatchedPair, ...]
    speedup: Ratio
    """The geometric mean, with the interval of `mean_speedup`."""
    lowest: float
    """The smallest speed-up of a single pair."""
    highest: float
    data_bound: int
    """Pairs of which both trials wait for data."""
    accuracy_change: float | None
    """Mean over the configurations, paired by seed; of batch_size, over the pairs whose fair comparison was run: the
    trial with the scaled lr against the first of the pair.
    """
    accuracy_noise: float | None
    """Half of the 95 % interval that chance alone gives it: the sampling of the validation images, and what seeds do
    where several were run.
    """
    verdict: Verdict


def knob_effects(matching: Matching, pairs: Iterable[MatchedPair]) -> tuple[KnobEffect, ...]:
    """Knob by knob, from the plain values to the special ones, whatever the order of the pairs."""
    changes: defaultdict[tuple[ComparisonKey, str, object, object], list[MatchedPair]] = defaultdict(list)
    for pair in pairs:
        changes[pair.before.key, pair.knob, pair.before_value, pair.after_value].append(pair)
    effects = [_effect(matching, same) for same in changes.values()]
    return tuple(sorted(effects, key=_order))


def from_plainest(effects: Sequence[KnobEffect]) -> tuple[KnobEffect, ...]:
    """Of effects in their order, those that change each knob from its plainest value."""
    plainest: dict[tuple[ComparisonKey, str], object] = {}
    for effect in effects:
        plainest.setdefault((effect.key, effect.knob), effect.before_value)
    return tuple(effect for effect in effects if plainest[effect.key, effect.knob] == effect.before_value)


def mean_speedup(pairs: Iterable[MatchedPair]) -> Ratio:
    """Over configurations, as `random_effects.mean_ratio` has it; the repeats of one configuration are pooled first."""
    repeats: defaultdict[object, list[Ratio]] = defaultdict(list)
    for pair in pairs:
        repeats[pair.before.knobs].append(pair.speedup)
    return mean_ratio([pooled_ratio(ratios) if len(ratios) > 1 else ratios[0] for ratios in repeats.values()])


def _effect(matching: Matching, pairs: Sequence[MatchedPair]) -> KnobEffect:
    first = pairs[0]
    speedup = mean_speedup(pairs)
    change, noise = _accuracy_change(matching, pairs)
    is_hidden = all(pair.is_hidden for pair in pairs)
    return KnobEffect(
        key=first.before.key,
        knob=first.knob,
        before_value=first.before_value,
        after_value=first.after_value,
        pairs=tuple(pairs),
        speedup=speedup,
        lowest=min(pair.speedup.value for pair in pairs),
        highest=max(pair.speedup.value for pair in pairs),
        data_bound=sum(pair.before.loop.bottleneck is pair.after.loop.bottleneck is Bottleneck.DATA for pair in pairs),
        accuracy_change=change,
        accuracy_noise=noise,
        verdict=Verdict.NO_CLEAR_DIFFERENCE
        if is_hidden
        else verdict_of(speedup, costs_accuracy=is_loss(change, noise)),
    )


def _accuracy_change(matching: Matching, pairs: Sequence[MatchedPair]) -> tuple[float | None, float | None]:
    """Over the configurations that were paired, each over its seeds. What an effect differs by from one to the other is
    no chance, and all are evaluated on the same images, so that the noise of the mean is that of one: the mean of all.
    """
    by_configuration: defaultdict[object, list[tuple[Result, Result]]] = defaultdict(list)
    for pair in pairs:
        fair = _fairly_compared(pair)
        if fair is not None and pair.before.accuracy is not None and fair.accuracy is not None:
            by_configuration[pair.before.knobs].append((pair.before, fair))
    found = [_change_over_seeds(matching, seeds) for seeds in by_configuration.values()]
    if not found:
        return None, None
    noises = [noise for _, noise in found if noise is not None]
    mean_noise = statistics.fmean(noises) if len(noises) == len(found) else None
    return statistics.fmean(change for change, _ in found), mean_noise


def _change_over_seeds(matching: Matching, seeds: Sequence[tuple[Result, Result]]) -> tuple[float, float | None]:
    """The mean change of one configuration, and its noise."""
    before = statistics.fmean(twin.accuracy or 0.0 for twin, _ in seeds)
    after = statistics.fmean(own.accuracy or 0.0 for _, own in seeds)
    first = seeds[0][0]
    differences = [(own.accuracy or 0.0) - (twin.accuracy or 0.0) for twin, own in seeds]
    seed_sd = matching.seed_sd[first.key]
    noise = difference_noise(before, after, first.independent_images, seed_sd=seed_sd, differences=differences)
    return after - before, noise


def _fairly_compared(pair: MatchedPair) -> Result | None:
    """A larger batch is not compared in accuracy at a learning rate that was not scaled with it."""
    if pair.knob != "batch_size":
        return pair.after
    return pair.scaled_lr.result if pair.scaled_lr is not None else None


def _order(effect: KnobEffect) -> tuple[object, ...]:
    place = KNOBS.index(effect.knob)
    return repr(effect.key), place, value_order(effect.before_value), value_order(effect.after_value)
