"""Findings that the numbers of single trials show, gathered over all trials that show them."""

import math
from collections import defaultdict
from collections.abc import Iterator

from orchestrator.compile_findings import compiled_trial_findings
from orchestrator.divergence_findings import divergence_findings
from orchestrator.findings import Finding, FindingKind, finding
from orchestrator.machine_findings import machine_findings
from orchestrator.matching import Matching
from orchestrator.results import Result

FEWEST_WINDOWS_SHARE = 1 / 3
"""Of the windows that the protocol asks for; below it a rate is called too short to measure."""


def trial_findings(matching: Matching) -> Iterator[Finding]:
    valid = [result for result in matching.results if result.unranked_reason is None]
    yield from _learned_nothing(valid)
    yield from divergence_findings(matching.results)
    yield from _unstable_timing(matching, valid)
    yield from _too_short(valid)
    yield from _neighbours(valid)
    yield from machine_findings(valid)
    yield from compiled_trial_findings(valid)
    yield from _skipped_steps(valid)
    yield from _measured_on_copy(valid)
    yield from _grown_validation_set(valid)
    yield from _notes(matching.results)


def _learned_nothing(results: list[Result]) -> Iterator[Finding]:
    found = [result for result in results if result.learned_nothing]
    if found:
        worst = max(found, key=lambda result: result.outcome.spec.config.lr)
        classes = worst.num_classes or 0
        yield finding(
            FindingKind.LEARNED_NOTHING,
            found,
            count=len(found),
            accuracy=worst.accuracy or 0.0,
            chance_accuracy=1 / classes,
            final_loss=worst.final_loss or 0.0,
            chance_loss=math.log(classes),
            lr=worst.outcome.spec.config.lr,
        )


def _unstable_timing(matching: Matching, results: list[Result]) -> Iterator[Finding]:
    errors = {
        result: result.rate.standard_error
        for result in results
        if result.rate and not _is_short(result) and result.rate.standard_error > matching.between[result.key].sd
    }
    if errors:
        worst = max(errors, key=lambda result: errors[result])
        yield finding(
            FindingKind.UNSTABLE_TIMING,
            list(errors),
            count=len(errors),
            window_sd=max(result.rate.window_sd for result in errors if result.rate),
            error_sd=errors[worst],
            between_sd=matching.between[worst.key].sd,
        )


def _is_short(result: Result) -> bool:
    return result.rate is not None and result.rate.windows < FEWEST_WINDOWS_SHARE * result.outcome.spec.protocol.windows


def _too_short(results: list[Result]) -> Iterator[Finding]:
    found = [result for result in results if result.outcome.throughput is None or _is_short(result)]
    if found:
        yield finding(
            FindingKind.TOO_SHORT_TO_MEASURE,
            found,
            count=len(found),
            windows=min(result.rate.windows if result.rate else 0 for result in found),
            asked_windows=max(result.outcome.spec.protocol.windows for result in found),
        )


def _neighbours(results: list[Result]) -> Iterator[Finding]:
    found = [result for result in results if (result.outcome.placement.neighbours or 0) > 0]
    if found:
        most = max(result.outcome.placement.neighbours or 0 for result in found)
        yield finding(FindingKind.NEIGHBOURS, found, count=len(found), most=most)


def _skipped_steps(results: list[Result]) -> Iterator[Finding]:
    skipped = {
        result: measured.skipped_steps or 0 for result in results if (measured := result.outcome.precision) is not None
    }
    found = [result for result, steps in skipped.items() if steps > 0]
    if found:
        yield finding(FindingKind.SKIPPED_STEPS, found, count=len(found), most=max(skipped.values()))


def _measured_on_copy(results: list[Result]) -> Iterator[Finding]:
    found = [
        result for result in results if result.outcome.throughput and result.outcome.throughput.measured_on == "copy"
    ]
    if found:
        yield finding(FindingKind.MEASURED_ON_COPY, found, count=len(found))


def _grown_validation_set(results: list[Result]) -> Iterator[Finding]:
    found = [
        result
        for result in results
        if (result.outcome.independent_validation_images or 0)
        and result.independent_images != result.outcome.validation_images
    ]
    if found:
        outcome = found[0].outcome
        yield finding(
            FindingKind.GROWN_VALIDATION_SET,
            found,
            count=len(found),
            dataset=outcome.spec.dataset,
            images=outcome.validation_images or 0,
            independent_images=outcome.independent_validation_images or 0,
        )


def _notes(results: tuple[Result, ...]) -> Iterator[Finding]:
    by_note: defaultdict[str, list[Result]] = defaultdict(list)
    for result in results:
        for note in dict.fromkeys(result.outcome.notes):
            by_note[note].append(result)
    for note, found in by_note.items():
        yield finding(FindingKind.NOTE, found, count=len(found), note=note)
