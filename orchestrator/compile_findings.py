"""Findings on `torch.compile`: what it did to single trials, and what it was worth against trials without it."""

import statistics
from collections.abc import Iterator, Sequence

from orchestrator.comparison import MatchedPair, Verdict
from orchestrator.compile_payback import is_compile_pair, payback
from orchestrator.findings import Finding, FindingKind, finding
from orchestrator.results import Result
from trainables.measurements import CompileMeasurement


def compiled_trial_findings(results: Sequence[Result]) -> Iterator[Finding]:
    compiled = {result: result.outcome.compilation for result in results if result.outcome.compilation is not None}
    yield from _fell_back(compiled)
    yield from _recompilations(compiled)
    yield from _graph_breaks(compiled)


def compile_pair_findings(all_pairs: Sequence[MatchedPair]) -> Iterator[Finding]:
    """A pair must stand out among as many as were looked at."""
    pairs = [pair for pair in all_pairs if is_compile_pair(pair)]
    clear = [pair for pair in pairs if pair.speedup.excludes_one_among(len(pairs))]
    yield from _slower([pair for pair in clear if pair.verdict is Verdict.SLOWER], len(pairs))
    yield from _not_paid_back(clear, len(pairs))


def _fell_back(compiled: dict[Result, CompileMeasurement]) -> Iterator[Finding]:
    found = [result for result, measured in compiled.items() if measured.gave_up or measured.eager_functions]
    if found:
        worst = max(found, key=lambda result: len(compiled[result].eager_functions))
        functions = compiled[worst].eager_functions
        yield finding(
            FindingKind.COMPILE_FELL_BACK,
            found,
            count=len(found),
            functions=max(1, len(functions)),
            function=functions[0] if functions else "one that was not recorded",
            gave_up=sum(compiled[result].gave_up is True for result in found),
        )


def _recompilations(compiled: dict[Result, CompileMeasurement]) -> Iterator[Finding]:
    found = [result for result, measured in compiled.items() if (measured.recompilations or 0) > 0]
    if found:
        most = max(compiled[result].recompilations or 0 for result in found)
        yield finding(FindingKind.RECOMPILATIONS, found, count=len(found), most=most)


def _graph_breaks(compiled: dict[Result, CompileMeasurement]) -> Iterator[Finding]:
    found = [result for result, measured in compiled.items() if (measured.graph_breaks or 0) > 0]
    if found:
        worst = max(found, key=lambda result: compiled[result].graph_breaks or 0)
        reasons = compiled[worst].graph_break_reasons
        yield finding(
            FindingKind.GRAPH_BREAKS,
            found,
            count=len(found),
            most=compiled[worst].graph_breaks or 0,
            reason=reasons[0] if reasons else "no reason was recorded",
        )


def _slower(found: Sequence[MatchedPair], pairs: int) -> Iterator[Finding]:
    if found:
        yield finding(
            FindingKind.COMPILE_SLOWER,
            [pair.after for pair in found],
            count=len(found),
            pairs=pairs,
            speedup=statistics.median(pair.speedup.value for pair in found),
            worst_speedup=min(pair.speedup.value for pair in found),
        )


def _not_paid_back(clear: Sequence[MatchedPair], pairs: int) -> Iterator[Finding]:
    unpaid = []
    for pair in clear:
        earned = payback(pair)
        if earned is not None and earned.epochs is not None and earned.epochs > pair.after.outcome.epochs_completed:
            unpaid.append((earned.epochs, earned, pair))
    if unpaid:
        epochs, earned, typical = sorted(unpaid, key=lambda entry: entry[0])[len(unpaid) // 2]
        yield finding(
            FindingKind.COMPILE_NOT_PAID_BACK,
            [pair.after for _, _, pair in unpaid],
            count=len(unpaid),
            pairs=pairs,
            compile_seconds=earned.compile_seconds,
            speedup=typical.speedup.value,
            break_even_epochs=epochs,
            break_even_images=round(earned.images),
            epochs=typical.after.outcome.epochs_completed,
        )
