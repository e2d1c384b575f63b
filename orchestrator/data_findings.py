"""Findings that the three rates of a loop show: waiting for data, alone and in pairs, and rates that do not fit."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum

from orchestrator.bottleneck import Bottleneck
from orchestrator.comparison import COMPUTE_KNOBS, MatchedPair
from orchestrator.findings import Evidence, Finding, FindingKind, finding
from orchestrator.matching import Matching
from orchestrator.results import Result
from orchestrator.statistics import Ratio, estimate_rate, rate_ratio
from trainables.specs import KNOBS

NUM_WORKERS = KNOBS.index("num_workers")

CLEARLY_FASTER = 1.1
"""Times the rate of a loader that another one must have to be advised."""


class Remedy(StrEnum):
    """What to do about a loader that is too slow."""

    OTHER_WORKERS = "other_workers"
    """The run has a faster loader, which differs in `num_workers` alone."""
    MORE_WORKERS = "more_workers"
    MORE_WORKERS_IF_CPUS = "more_workers_if_cpus"
    """How many cores the node has is not known."""
    CHEAPER_DATA = "cheaper_data"
    """No core is left for more workers."""


def data_findings(matching: Matching, pairs: Sequence[MatchedPair]) -> Iterator[Finding]:
    valid = [result for result in matching.results if result.unranked_reason is None]
    yield from _data_bound(valid)
    yield from _data_bound_pairs(matching, [pair for pair in pairs if pair.knob in COMPUTE_KNOBS])
    yield from _rates_disagree(valid)


def _data_bound(results: Sequence[Result]) -> Iterator[Finding]:
    """One for each remedy; its numbers are those of the trial that waits most."""
    fastest = _fastest_loaders(results)
    by_remedy: defaultdict[Remedy, list[Result]] = defaultdict(list)
    for result in results:
        if result.loop.bottleneck is Bottleneck.DATA and result.loop.data_wait_fraction is not None:
            by_remedy[_remedy(result, fastest)].append(result)
    for remedy, found in sorted(by_remedy.items()):
        worst = max(found, key=lambda result: result.loop.data_wait_fraction or 0.0)
        yield finding(
            FindingKind.DATA_BOUND,
            found,
            count=len(found),
            data_wait_fraction=worst.loop.data_wait_fraction or 0.0,
            loader_rate=_loader_rate(worst),
            compute_rate=worst.loop.compute.images_per_second if worst.loop.compute else 0.0,
            ceiling=worst.loop.ceiling or 1.0,
            num_workers=worst.outcome.spec.config.num_workers,
            remedy=remedy.value,
            **_remedy_evidence(remedy, worst, fastest),
        )


def _remedy(result: Result, fastest: "dict[object, Result]") -> Remedy:
    if _loader_rate(fastest[_but_workers(result)]) > CLEARLY_FASTER * _loader_rate(result):
        return Remedy.OTHER_WORKERS
    spare = _spare_cpus(result)
    if spare is None:
        return Remedy.MORE_WORKERS_IF_CPUS
    return Remedy.MORE_WORKERS if spare > 0 else Remedy.CHEAPER_DATA


def _remedy_evidence(remedy: Remedy, result: Result, fastest: "dict[object, Result]") -> Evidence:
    if remedy is Remedy.OTHER_WORKERS:
        best = fastest[_but_workers(result)]
        return {"best_workers": best.outcome.spec.config.num_workers, "best_loader_rate": _loader_rate(best)}
    return {"spare_cpus": _spare_cpus(result) or 0} if remedy is Remedy.MORE_WORKERS else {}


def _fastest_loaders(results: Iterable[Result]) -> "dict[object, Result]":
    """Of the trials that differ in `num_workers` alone."""
    fastest: dict[object, Result] = {}
    for result in results:
        key = _but_workers(result)
        if result.loop.loader and (key not in fastest or _loader_rate(result) > _loader_rate(fastest[key])):
            fastest[key] = result
    return fastest


def _but_workers(result: Result) -> object:
    return result.key, result.seed_key, result.knobs[:NUM_WORKERS] + result.knobs[NUM_WORKERS + 1 :]


def _loader_rate(result: Result) -> float:
    return result.loop.loader.images_per_second if result.loop.loader else 0.0


def _spare_cpus(result: Result) -> int | None:
    machine, threads = result.outcome.machine, result.outcome.placement.cpu_threads
    if machine is None or machine.node_cpus is None:
        return None
    return machine.node_cpus - (threads or 1) - result.outcome.spec.config.num_workers


def _data_bound_pairs(matching: Matching, pairs: Sequence[MatchedPair]) -> Iterator[Finding]:
    """One for each knob and pair of its values; its numbers are those of the pair whose compute differs most."""
    by_values: defaultdict[tuple[str, str, str], list[MatchedPair]] = defaultdict(list)
    for pair in pairs:
        by_values[pair.knob, str(pair.before_value), str(pair.after_value)].append(pair)
    for (knob, before_value, after_value), alike in by_values.items():
        ratios = {
            pair: ratio
            for pair in alike
            if pair.before.loop.bottleneck is pair.after.loop.bottleneck is Bottleneck.DATA
            and (ratio := _compute_ratio(matching, pair)) is not None
        }
        if ratios:
            shown = max(ratios, key=lambda pair: max(ratios[pair].value, 1 / ratios[pair].value))
            yield finding(
                FindingKind.DATA_BOUND_PAIR,
                [result for pair in ratios for result in (pair.before, pair.after)],
                count=len(ratios),
                pairs=len(alike),
                knob=knob,
                before_value=before_value,
                after_value=after_value,
                speedup=shown.speedup.value,
                compute_speedup=ratios[shown].value,
                compute_low=ratios[shown].low,
                compute_high=ratios[shown].high,
            )


def _compute_ratio(matching: Matching, pair: MatchedPair) -> Ratio | None:
    """The two were measured in two processes: their noise is that of any two rates."""
    before, after = pair.before.loop.compute, pair.after.loop.compute
    if before is None or after is None:
        return None
    between = matching.between[pair.before.key]
    return rate_ratio(estimate_rate([after], between), estimate_rate([before], between))


def _rates_disagree(results: Sequence[Result]) -> Iterator[Finding]:
    found = [result for result in results if result.loop.agrees is False]
    if found:
        worst = max(found, key=lambda result: abs(result.loop.disagreement or 0.0))
        loop = worst.loop
        yield finding(
            FindingKind.RATES_DISAGREE,
            found,
            count=len(found),
            compute_rate=loop.compute.images_per_second if loop.compute else 0.0,
            loader_rate=_loader_rate(worst),
            predicted_rate=loop.predicted_images_per_second or 0.0,
            end_to_end_rate=loop.end_to_end.images_per_second if loop.end_to_end else 0.0,
            disagreement=loop.disagreement or 0.0,
        )
