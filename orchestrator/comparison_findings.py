"""Findings that comparing trials shows: matched pairs, and the standings of a ranking.

Of a hundred equal pairs some differ beyond a 95 % interval by chance, so a finding asks that a pair stands out among as
many as were looked at.
"""

from collections.abc import Iterator, Sequence

from orchestrator.accuracy_statistics import difference_noise
from orchestrator.comparison import MatchedPair, is_loss
from orchestrator.compile_findings import compile_pair_findings
from orchestrator.findings import Finding, FindingKind, finding
from orchestrator.half_precision_findings import half_precision_findings
from orchestrator.knob_interactions import Interaction
from orchestrator.ranking import RankBy, Ranking, Standing
from orchestrator.statistics import INTERVAL_Z, Ratio

MOST_INTERACTIONS = 5
"""Findings on them; the others are in the JSON document."""


def pair_findings(pairs: Sequence[MatchedPair]) -> Iterator[Finding]:
    yield from _batch_size_and_lr([pair for pair in pairs if pair.knob == "batch_size"])
    yield from compile_pair_findings(pairs)
    yield from half_precision_findings(pairs)


def interaction_findings(found: Sequence[Interaction]) -> Iterator[Finding]:
    """The interactions are clear among all that were looked at already."""
    for one in found[:MOST_INTERACTIONS]:
        effect, threshold = one.effect, one.threshold
        change: dict[str, str | int] = {
            "knob": effect.knob,
            "before": str(effect.before_value),
            "after": str(effect.after_value),
            "other_knob": one.by,
            "pairs": one.first.pairs + one.second.pairs,
        }
        trials = [pair.after for pair in effect.pairs]
        if threshold is not None:
            yield finding(
                FindingKind.KNOB_HELPS_ON_ONE_SIDE,
                trials,
                **change,
                threshold=str(threshold.value),
                direction="up" if threshold.upwards else "down",
                **_with_interval("speedup", threshold.inside),
                **_with_interval("other_speedup", threshold.outside),
            )
        else:
            yield finding(
                FindingKind.KNOB_DEPENDS_ON_KNOB,
                trials,
                **change,
                value=str(one.first.value),
                other_value=str(one.second.value),
                **_with_interval("speedup", one.first.speedup),
                **_with_interval("other_speedup", one.second.speedup),
                **_with_interval("contrast", one.contrast),
            )


def _with_interval(name: str, ratio: Ratio) -> dict[str, float]:
    return {name: ratio.value, f"{name}_low": ratio.low, f"{name}_high": ratio.high}


def ranking_findings(ranking: Ranking, rank_by: RankBy, accuracy_tolerance: float) -> Iterator[Finding]:
    unreliable = [standing for standing in ranking.standings if standing.unfinished]
    if unreliable:
        first = unreliable[0]
        yield finding(
            FindingKind.SEEDS_NOT_COMPLETED,
            [result for standing in unreliable for result in standing.unfinished],
            count=len(unreliable),
            configuration=first.results[0].outcome.spec.label,
            unfinished=len(first.unfinished),
            runs=len(first.unfinished) + len(first.results),
        )
    known = [standing for standing in ranking.standings if standing.accuracy is not None and standing.sampling_error]
    if known:
        best = max(known, key=lambda standing: standing.accuracy or 0.0)
        yield from _tolerance(best, rank_by, accuracy_tolerance)
        yield from _single_seed(known, best)


def _batch_size_and_lr(pairs: Sequence[MatchedPair]) -> Iterator[Finding]:
    losing = [pair for pair in pairs if is_loss(pair.accuracy_change, pair.accuracy_noise, len(pairs))]
    blamed = [pair for pair in losing if pair.scaled_lr is None]
    cleared = [
        pair
        for pair in losing
        if pair.scaled_lr is not None and not is_loss(pair.scaled_lr.accuracy_change, pair.accuracy_noise)
    ]
    for kind, found in (
        (FindingKind.BATCH_SIZE_BLAMED_FOR_LR, blamed),
        (FindingKind.BATCH_SIZE_CLEARED_BY_LR, cleared),
    ):
        if not found:
            continue
        worst = min(found, key=lambda pair: pair.accuracy_change or 0.0)
        before, after = worst.before.outcome.spec.config, worst.after.outcome.spec.config
        twin = worst.scaled_lr
        yield finding(
            kind,
            [pair.after for pair in found],
            count=len(found),
            before_batch_size=before.batch_size,
            after_batch_size=after.batch_size,
            lr=before.lr,
            accuracy_change=worst.accuracy_change or 0.0,
            scaled_lr=twin.result.outcome.spec.config.lr if twin else before.lr * after.batch_size / before.batch_size,
            scaled_accuracy_change=(twin.accuracy_change or 0.0) if twin else "not run",
        )


def _tolerance(best: Standing, rank_by: RankBy, tolerance: float) -> Iterator[Finding]:
    error = best.sampling_error
    if rank_by is RankBy.FASTEST_ACCURATE and error is not None and tolerance < error:
        yield finding(
            FindingKind.TOLERANCE_BELOW_SAMPLING_ERROR,
            accuracy_tolerance=tolerance,
            sampling_error=error,
            accuracy=best.accuracy or 0.0,
            independent_images=best.results[0].independent_images or 0,
        )


def _single_seed(known: Sequence[Standing], best: Standing) -> Iterator[Finding]:
    """How many accuracies cannot be told from the best one."""
    if any(len(standing.results) > 1 for standing in known):
        return
    images = best.results[0].independent_images
    near = []
    for standing in known:
        noise = difference_noise(standing.accuracy or 0.0, best.accuracy or 0.0, images, seed_sd=None)
        if noise is not None and 0.0 < (best.accuracy or 0.0) - (standing.accuracy or 0.0) <= noise:
            near.append(standing)
    if near:
        yield finding(
            FindingKind.SINGLE_SEED_ACCURACY,
            count=len(near),
            configurations=len(known),
            reach=INTERVAL_Z * (best.sampling_error or 0.0),
        )
