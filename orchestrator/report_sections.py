"""A report as sections of plain text, lists and tables, which Markdown and HTML each write in their way."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from orchestrator.answer import RunReport
from orchestrator.answer_words import answer_sentences, key_words, method_sentences, nothing_ranked
from orchestrator.comparison import MatchedPair
from orchestrator.effect_words import change_with_noise, change_words, effect_notes, verdict_words
from orchestrator.finding_words import finding_words
from orchestrator.knob_effects import KnobEffect
from orchestrator.leaderboard import leaderboard
from orchestrator.outcome_words import counts_words, not_ranked_groups, not_run_words
from orchestrator.pair_columns import knob_text
from orchestrator.ranking import Ranking
from orchestrator.wording import interval, one_line, ratio, signed_points

MOST_PAIRS = 100
MOST_EFFECTS = 60
MOST_ROWS = 1000
MOST_LABELS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Text throughout; nothing in it is markup."""

    names: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numeric: tuple[bool, ...]
    """Which columns hold numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    heading: str
    paragraphs: tuple[str, ...] = ()
    items: tuple[str, ...] = ()
    table: Table | None = None
    notes: tuple[str, ...] = ()
    """Small print below."""


def sections(report: RunReport) -> Iterator[Section]:
    """Most important first; a section with nothing to say is left out."""
    yield from _answers(report)
    for ranking in report.rankings:
        yield _leaderboard(ranking)
    yield from _effects(report)
    yield from _not_ranked(report)
    if not_run := not_run_words(report, MOST_LABELS):
        yield Section(heading="Not run", paragraphs=(f"{not_run}.",))
    yield from _findings(report)
    yield from _pairs(report)
    method = [sentence for ranking in report.rankings for sentence in method_sentences(report, ranking)]
    yield Section(
        heading="How it was measured and ranked",
        items=(*dict.fromkeys(method), "± beside an accuracy is its sampling error, one standard error."),
    )
    if report.environment:
        yield Section(heading="Environment", table=_environment(report.environment))


def _answers(report: RunReport) -> Iterator[Section]:
    counts = (f"{counts_words(report)}.",)
    if not report.answers:
        yield Section(heading="Answer", paragraphs=(nothing_ranked(report),), notes=counts)
    for answer in report.answers:
        heading = "Answer" if len(report.answers) == 1 else f"Answer: {key_words(answer.ranking.key)}"
        notes = counts if answer is report.answers[-1] else ()
        yield Section(heading=heading, paragraphs=tuple(answer_sentences(answer)), notes=notes)


def _leaderboard(ranking: Ranking) -> Section:
    columns = leaderboard(ranking, MOST_ROWS)
    table = Table(
        names=tuple(column.name for column in columns),
        rows=tuple(zip(*(column.cells for column in columns), strict=True)),
        numeric=tuple(column.numeric for column in columns),
    )
    left_out = len(ranking.standings) - MOST_ROWS
    notes = (f"{left_out:,} more in results.csv.",) if left_out > 0 else ()
    return Section(heading=f"Leaderboard: {key_words(ranking.key)}", table=table, notes=notes)


def _effects(report: RunReport) -> Iterator[Section]:
    keys = list(dict.fromkeys(effect.key for effect in report.effects))
    for key in keys:
        effects = [effect for effect in report.effects if effect.key == key]
        shown = sorted(effects, key=lambda effect: -len(effect.pairs))[:MOST_EFFECTS]
        table = Table(
            names=("knob", "change", "pairs", "speed-up", "95 % interval", "single pairs", "accuracy", "verdict"),
            rows=tuple(_effect(effect) for effect in effects if effect in shown),
            numeric=(False, False, True, True, True, True, True, False),
        )
        heading = "What each knob does" if len(keys) == 1 else f"What each knob does: {key_words(key)}"
        left_out = len(effects) - len(shown)
        more = (f"{left_out:,} more changes, each over no more pairs than these.",) if left_out else ()
        yield Section(heading=heading, table=table, notes=(*more, *effect_notes(effects)))


def _effect(effect: KnobEffect) -> tuple[str, ...]:
    return (
        effect.knob,
        change_words(effect),
        f"{len(effect.pairs):,}",
        ratio(effect.speedup.value),
        interval(effect.speedup.low, effect.speedup.high),
        interval(effect.lowest, effect.highest),
        change_with_noise(effect.accuracy_change, effect.accuracy_noise),
        verdict_words(effect),
    )


def _not_ranked(report: RunReport) -> Iterator[Section]:
    groups = not_ranked_groups(report)
    if groups:
        table = Table(
            names=("status", "trials", "reason"),
            rows=tuple((group.status, group.trials(MOST_LABELS), group.reason) for group in groups),
            numeric=(False, False, False),
        )
        yield Section(heading=f"Not ranked ({len(report.not_ranked):,})", table=table)


def _findings(report: RunReport) -> Iterator[Section]:
    items = []
    for finding in report.findings:
        words = finding_words(finding)
        about = f" Trials: {words.trials}." if words.trials else ""
        items.append(f"{words.sentence}{about} {words.advice}".rstrip())
    if items:
        yield Section(heading="Findings", items=tuple(items))


def _pairs(report: RunReport) -> Iterator[Section]:
    """The pairs that say most: the furthest from a tie, in units of their interval."""
    if not report.pairs:
        return
    clearest = sorted(report.pairs, key=lambda pair: -pair.speedup.standard_errors)[:MOST_PAIRS]
    table = Table(
        names=("knob", "from", "to", "all else as in", "speed-up", "95 % interval", "accuracy", "verdict"),
        rows=tuple(_pair(pair) for pair in clearest),
        numeric=(False, False, False, False, True, True, True, False),
    )
    left_out = len(report.pairs) - len(clearest)
    notes = (f"{left_out:,} more in pairs.parquet, less clear than these.",) if left_out else ()
    yield Section(heading="Matched pairs: one knob changed, all else the same", table=table, notes=notes)


def _pair(pair: MatchedPair) -> tuple[str, ...]:
    verdict = pair.verdict.value.replace("_", " ")
    if pair.scaled_lr is not None and pair.scaled_lr.accuracy_change is not None:
        lr = pair.scaled_lr.result.outcome.spec.config.lr
        verdict += f"; fair at lr {lr:g}: {signed_points(pair.scaled_lr.accuracy_change)}"
    return (
        pair.knob,
        knob_text(pair.before_value) or "none",
        knob_text(pair.after_value) or "none",
        pair.before.outcome.spec.label,
        ratio(pair.speedup.value),
        interval(pair.speedup.low, pair.speedup.high),
        change_with_noise(pair.accuracy_change, pair.accuracy_noise),
        verdict,
    )


def _environment(environment: Any) -> Table:
    rows = tuple(
        (one_line(str(name), 100), one_line(value if isinstance(value, str) else json.dumps(value, default=str), 1000))
        for name, value in sorted(environment.items())
    )
    return Table(names=("what", "value"), rows=rows, numeric=(False, False))
