"""Who may be ranked, in which order, and who ties: one ranking for each comparison key, never across two."""

import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from orchestrator.accuracy_statistics import sampling_error
from orchestrator.baseline import AgainstBaseline, against_baseline
from orchestrator.baseline_choice import EAGER_FP32, Baseline
from orchestrator.knob_order import knobs_order
from orchestrator.matching import Matching
from orchestrator.pareto import pareto_front
from orchestrator.results import ComparisonKey, Result
from orchestrator.statistics import BetweenProcess, RateEstimate, rate_ratio
from trainables.specs import TrainingConfig

DEFAULT_ACCURACY_TOLERANCE = 0.005

ACCURACY_DIGITS = 9
"""Accuracies are counts over counts; a difference beyond these decimals is the computer's."""


class RankBy(StrEnum):
    FASTEST_ACCURATE = "fastest-accurate"
    """By images per second among those within the tolerance of the best accuracy; then the rest, by accuracy."""
    IMAGES_PER_SECOND = "images_per_second"
    ACCURACY = "accuracy"


WIDEST_FACTOR = 3.0
"""From a rate to the end of its 95 % interval: one that is known less exactly would tie with everything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """One configuration's place; its seeds and replicates are taken together."""

    rank: int
    """From 1; equal where two are tied, and then the next places stay empty."""
    config: TrainingConfig
    results: tuple[Result, ...]
    unfinished: tuple[Result, ...]
    """Seeds and replicates of the same configuration that are not ranked."""
    accuracy: float | None
    """Mean over the seeds; None where the data set is not scored."""
    sampling_error: float | None
    """Standard error of the accuracy from the number of validation images; seeds share them and do not lower it."""
    rate: RateEstimate | None
    within_tolerance: bool | None
    """Of the best accuracy; None where that is not asked."""
    on_pareto_front: bool | None
    """No other one is both as fast and as accurate, and better in one; None where the rate or accuracy is not known."""
    learned_nothing: bool
    baseline: AgainstBaseline


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    key: ComparisonKey
    baseline: Baseline | None
    """What speed-ups are over; None where nothing is compared."""
    between: BetweenProcess
    scored: bool
    """Whether the data set has an accuracy at all; where not, the rate alone ranks."""
    best_accuracy: float | None
    accuracy_margin: float
    """The tolerance, or one standard error of the best where it has several seeds and that is more."""
    standings: tuple[Standing, ...]
    """In order of rank; those that learned nothing are last."""

    @property
    def leaders(self) -> tuple[Standing, ...]:
        """The first, and those tied with it."""
        return tuple(standing for standing in self.standings if standing.rank == 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class NotRanked:
    result: Result
    reason: str


def rank(
    matching: Matching,
    rank_by: RankBy,
    accuracy_tolerance: float = DEFAULT_ACCURACY_TOLERANCE,
    baseline: Baseline | None = EAGER_FP32,
) -> tuple[tuple[Ranking, ...], tuple[NotRanked, ...]]:
    """Every result is in exactly one of the two. Rankings with more configurations come first."""
    by_key: defaultdict[ComparisonKey, list[Result]] = defaultdict(list)
    not_ranked = []
    for result in matching.results:
        by_key[result.key].append(result)
        if result.unranked_reason is not None:
            not_ranked.append(NotRanked(result=result, reason=result.unranked_reason))
    rankings = []
    for key, results in by_key.items():
        valid = [result for result in results if result.unranked_reason is None]
        scored = any(result.accuracy is not None for result in valid)
        lacking = {result: reason for result in valid if (reason := _lacks(result, rank_by, scored=scored))}
        not_ranked += [NotRanked(result=result, reason=reason) for result, reason in lacking.items()]
        chosen = [result for result in valid if result not in lacking]
        if chosen:
            rankings.append(_rank_one(matching, key, chosen, rank_by, accuracy_tolerance, baseline, scored=scored))
    rankings.sort(key=lambda ranking: (-len(ranking.standings), repr(ranking.key)))
    return tuple(rankings), tuple(not_ranked)


def _lacks(result: Result, rank_by: RankBy, *, scored: bool) -> str | None:
    """Why a completed result cannot be ranked in this way."""
    if scored and result.accuracy is None and rank_by is not RankBy.IMAGES_PER_SECOND:
        return "no accuracy was recorded"
    if result.rate is None and not (scored and rank_by is RankBy.ACCURACY):
        return "no throughput was measured"
    return None


def _rank_one(
    matching: Matching,
    key: ComparisonKey,
    chosen: Sequence[Result],
    rank_by: RankBy,
    accuracy_tolerance: float,
    baseline: Baseline | None,
    *,
    scored: bool,
) -> Ranking:
    together: defaultdict[tuple[object, ...], list[Result]] = defaultdict(list)
    for result in chosen:
        together[result.knobs].append(result)
    entries = [_unplaced(matching, results, baseline) for results in together.values()]
    entries.sort(key=_tie_breaker)
    best, margin = _best(entries, accuracy_tolerance, matching.seed_sd[key])
    if scored and rank_by is RankBy.FASTEST_ACCURATE and best is not None:
        entries = [replace(entry, within_tolerance=_within(entry, best, margin)) for entry in entries]
    placed = _placed(entries, rank_by if scored else RankBy.IMAGES_PER_SECOND)
    return Ranking(
        key=key,
        baseline=baseline,
        between=matching.between[key],
        scored=scored,
        best_accuracy=best,
        accuracy_margin=margin,
        standings=tuple(_with_pareto_front(placed, scored=scored)),
    )


def _unplaced(matching: Matching, results: Sequence[Result], baseline: Baseline | None) -> Standing:
    first = results[0]
    accuracies = [result.accuracy for result in results if result.accuracy is not None]
    accuracy = statistics.fmean(accuracies) if accuracies else None
    images = first.independent_images
    return Standing(
        rank=0,
        config=first.outcome.spec.config,
        results=tuple(results),
        unfinished=tuple(matching.others(results)),
        accuracy=accuracy,
        sampling_error=sampling_error(accuracy, images) if accuracy is not None and images else None,
        rate=matching.rate_of_all(results),
        within_tolerance=None,
        on_pareto_front=None,
        learned_nothing=all(result.learned_nothing for result in results),
        baseline=against_baseline(matching, results, baseline),
    )


def _tie_breaker(entry: Standing) -> tuple[float, float, tuple[tuple[float, str], ...]]:
    """Fastest first, then most accurate, then by the knobs themselves: never by the order of the input."""
    rate = entry.rate.images_per_second if entry.rate else 0.0
    return -rate, -(entry.accuracy or 0.0), knobs_order(entry.results[0].knobs)


def _best(entries: Sequence[Standing], tolerance: float, seed_sd: float | None) -> tuple[float | None, float]:
    """The best mean accuracy, and how far below it counts as good.

    Where the best has several seeds, at least one standard error of its mean: the one-standard-error rule of Breiman,
    Friedman, Olshen and Stone (1984), with the deviation from seed to seed pooled over all configurations.
    """
    scored = [entry for entry in entries if entry.accuracy is not None and not entry.learned_nothing]
    best = max(scored, key=lambda entry: entry.accuracy or 0.0, default=None)
    if best is None:
        return None, tolerance
    if seed_sd is None or len(best.results) < 2:
        return best.accuracy, tolerance
    return best.accuracy, max(tolerance, seed_sd / len(best.results) ** 0.5)


def _within(entry: Standing, best: float, margin: float) -> bool:
    return (
        entry.accuracy is not None
        and not entry.learned_nothing
        and round(best - entry.accuracy, ACCURACY_DIGITS) <= margin
    )


def _placed(entries: Sequence[Standing], rank_by: RankBy) -> list[Standing]:
    """`entries` come in the order of `_tie_breaker`; blocks are ranked one after the other, each by rate."""
    placed: list[Standing] = []
    for block in _blocks(entries, rank_by):
        placed += _with_ranks(block, first=len(placed) + 1)
    return placed


def _blocks(entries: Sequence[Standing], rank_by: RankBy) -> list[list[Standing]]:
    """Those whose rate decides are one block; then a block for each accuracy; last what learned nothing, likewise."""
    by_rate: list[Standing] = []
    by_accuracy: defaultdict[tuple[bool, float], list[Standing]] = defaultdict(list)
    for entry in entries:
        if not entry.learned_nothing and (rank_by is RankBy.IMAGES_PER_SECOND or entry.within_tolerance):
            by_rate.append(entry)
        else:
            by_accuracy[entry.learned_nothing, -round(entry.accuracy or 0.0, ACCURACY_DIGITS)].append(entry)
    return [by_rate, *(by_accuracy[place] for place in sorted(by_accuracy))]


def _with_ranks(block: Sequence[Standing], first: int) -> list[Standing]:
    """The fastest leads; those tied with it share its rank, emulated precisions last; of the others, the fastest leads
    the next group.
    """
    placed: list[Standing] = []
    waiting = list(block)
    while waiting:
        leader, here = waiting[0], first + len(placed)
        tied: list[Standing] = []
        behind: list[Standing] = []
        for entry in waiting:
            (tied if entry is leader or _is_tied(leader, entry) else behind).append(entry)
        waiting = behind
        placed += [replace(entry, rank=here) for entry in sorted(tied, key=_is_emulated)]
    return placed


def _is_emulated(entry: Standing) -> bool:
    """A precision that the device has no instructions for is not recommended for a speed that is a tie."""
    return any(result.outcome.precision and result.outcome.precision.emulated for result in entry.results)


def _is_tied(leader: Standing, other: Standing) -> bool:
    """A rate that is not known cannot tell them apart; one that is hardly known is no match for the leader's."""
    if leader.rate is None or other.rate is None:
        return True
    if other.rate.high > WIDEST_FACTOR * other.rate.images_per_second:
        return False
    return rate_ratio(other.rate, leader.rate).is_tie


def _with_pareto_front(standings: Sequence[Standing], *, scored: bool) -> list[Standing]:
    """Marks the configurations that none beats in both rate and accuracy (in the rate, where nothing is scored)."""
    known = [entry for entry in standings if entry.rate and (entry.accuracy is not None or not scored)]
    points = [(entry.rate.images_per_second if entry.rate else 0.0, entry.accuracy or 0.0) for entry in known]
    marks = dict(zip(map(id, known), pareto_front(points), strict=True))
    return [replace(entry, on_pareto_front=marks.get(id(entry))) for entry in standings]
