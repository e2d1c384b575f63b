"""Findings that comparing trials shows: matched pairs, and the standings of a ranking.

Of a hundred equal pairs some differ beyond a 95 % interval by chance, so a finding asks that a pair stands out among as
many as were looked at.
"""

import statistics
from collections.abc import Iterator, Sequence

from orchestrator.accuracy_statistics import difference_noise
from orchestrator.comparison import MatchedPair, Verdict, break_even_epochs, is_loss
from orchestrator.findings import Finding, FindingKind, finding
from orchestrator.knob_interactions import Interaction
from orchestrator.ranking import RankBy, Ranking, Standing
from orchestrator.statistics import INTERVAL_Z, Ratio
from trainables.specs import CompileMode, Precision

MOST_INTERACTIONS = 5
"""Findings on them; the others are in the JSON document."""


def pair_findings(pairs: Sequence[MatchedPair]) -> Iterator[Finding]:
    compiled = [pair for pair in pairs if pair.knob == "compile" and pair.before_value == CompileMode.OFF]
    yield from _batch_size_and_lr([pair for pair in pairs if pair.knob == "batch_size"])
    yield from _slower(FindingKind.COMPILE_SLOWER, compiled)
    yield from _not_paid_back(compiled)
    for precision in (Precision.BF16, Precision.FP16):
        halved = [
            pair
            for pair in pairs
            if pair.knob == "precision" and (pair.before_value, pair.after_value) == (Precision.FP32, precision)
        ]
        yield from _slower(FindingKind.HALF_PRECISION_SLOWER, halved)


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


def _slower(kind: FindingKind, pairs: Sequence[MatchedPair]) -> Iterator[Finding]:
    slower = [pair for pair in pairs if pair.verdict is Verdict.SLOWER]
    found = [pair for pair in slower if pair.speedup.excludes_one_among(len(pairs))]
    if found:
        yield finding(
            kind,
            [pair.after for pair in found],
            count=len(found),
            pairs=len(pairs),
            knob_value=str(found[0].after_value),
            speedup=statistics.median(pair.speedup.value for pair in found),
            worst_speedup=min(pair.speedup.value for pair in found),
        )


def _not_paid_back(pairs: Sequence[MatchedPair]) -> Iterator[Finding]:
    faster = [pair for pair in pairs if pair.speedup.excludes_one_among(len(pairs))]
    needed = {pair: epochs for pair in faster if (epochs := break_even_epochs(pair)) is not None}
    found = [pair for pair, epochs in needed.items() if epochs > pair.after.outcome.epochs_completed]
    if found:
        typical = sorted(found, key=lambda pair: needed[pair])[len(found) // 2]
        compiled = typical.after.outcome.compilation
        yield finding(
            FindingKind.COMPILE_NOT_PAID_BACK,
            [pair.after for pair in found],
            count=len(found),
            pairs=len(pairs),
            compile_seconds=(compiled.compile_seconds if compiled else None) or 0.0,
            speedup=typical.speedup.value,
            break_even_epochs=needed[typical],
            epochs=typical.after.outcome.epochs_completed,
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
