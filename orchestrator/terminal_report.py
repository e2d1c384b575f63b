"""A report in the terminal: the table, the answer, what was not ranked and why, findings, where the files are."""

import textwrap
from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from orchestrator.answer import RunReport
from orchestrator.answer_words import answer_sentences, key_words, method_sentences, nothing_ranked
from orchestrator.effect_words import effect_line
from orchestrator.finding_words import finding_words
from orchestrator.knob_effects import from_plainest
from orchestrator.leaderboard import leaderboard
from orchestrator.outcome_words import counts_words, not_ranked_groups, not_run_words
from orchestrator.ranking import Ranking
from orchestrator.text_table import text_table
from orchestrator.wording import plain_signs

WIDEST = 160
MOST_ROWS = 30
MOST_GROUPS = 12
MOST_FINDINGS = 6
MOST_LABELS = 3
MOST_EFFECTS = 8

HEADING, ROW = "bold underline", "none"
UNWRAPPED = (HEADING, ROW)
"""Styles of a table's lines, which fit the width already."""

Line = tuple[str, str]
"""A rich style and the text, which is never read as markup."""


def render(report: RunReport, console: Console, *, run: str | None = None) -> None:
    """`run` is the folder that holds the files, where there is one.

    Not on a terminal, nothing is wrapped or styled, and our own signs are ASCII; letters that the console's encoding
    lacks are written as escapes.
    """
    width = min(console.width, WIDEST)
    for style, text in _lines(report, width, run, plain=not console.is_terminal):
        shown = text if console.is_terminal else plain_signs(text)
        if console.is_terminal and style not in UNWRAPPED:
            shown = _wrapped(shown, width)
        shown = shown.encode(console.encoding, "backslashreplace").decode(console.encoding)
        console.print(Text(shown, style=style), soft_wrap=True)


def _wrapped(text: str, width: int) -> str:
    """At spaces only, so that labels and paths stay whole; items of a list hang by their indent."""
    indent = " " * (len(text) - len(text.lstrip(" ")))
    hanging = f"{indent}  " if indent else ""
    return textwrap.fill(
        text, width, subsequent_indent=hanging, break_long_words=False, break_on_hyphens=False, drop_whitespace=True
    )


def _lines(report: RunReport, width: int, run: str | None, *, plain: bool) -> Iterator[Line]:
    for ranking in report.rankings:
        yield from _table(ranking, width, plain=plain)
    if not report.answers:
        yield "", nothing_ranked(report)
    for answer in report.answers:
        prefix = f"{key_words(answer.ranking.key)}: " if len(report.answers) > 1 else ""
        first, *others = answer_sentences(answer)
        yield "bold green", f"{prefix}{first}"
        yield from (("", sentence) for sentence in others)
    yield from _effects(report)
    yield from _not_ranked(report)
    if not_run := not_run_words(report, MOST_LABELS):
        yield from (("", ""), ("", not_run))
    yield from _findings(report)
    yield from _method(report)
    yield from (("", ""), ("dim", counts_words(report)))
    if run is not None:
        best = ", best.yaml" if report.winner else ""
        yield "dim", f"{run}: report.html, leaderboard.md, results.parquet, results.csv, pairs.parquet{best}"


def _table(ranking: Ranking, width: int, *, plain: bool) -> Iterator[Line]:
    table = text_table(leaderboard(ranking, MOST_ROWS), width, plain_signs if plain else str)
    yield "dim", key_words(ranking.key)
    yield HEADING, table.heading
    yield from ((ROW, line) for line in table.lines)
    left_out = len(ranking.standings) - len(table.lines)
    if left_out:
        yield "dim", f"{left_out:,} more in leaderboard.md and results.csv"
    if table.caption:
        yield "dim", table.caption
    yield "", ""


def _method(report: RunReport) -> Iterator[Line]:
    """Each sentence once: rankings mostly share them."""
    sentences = [sentence for ranking in report.rankings for sentence in method_sentences(report, ranking)]
    if sentences:
        yield from (("", ""), ("bold", "How it was measured and ranked"))
    yield from (("dim", f"  {sentence}") for sentence in dict.fromkeys(sentences))


def _effects(report: RunReport) -> Iterator[Line]:
    """Of the first device alone; the files have the others, and every other change."""
    if not report.answers:
        return
    effects = [effect for effect in report.effects if effect.key == report.answers[0].ranking.key]
    shown = sorted(from_plainest(effects), key=lambda effect: -len(effect.pairs))[:MOST_EFFECTS]
    if shown:
        yield from (("", ""), ("bold", "What each knob does, all else equal"))
    yield from (("", f"  {effect_line(effect)}") for effect in effects if effect in shown)
    if len(shown) < len(effects):
        yield "dim", f"  and {len(effects) - len(shown):,} more in report.html"


def _not_ranked(report: RunReport) -> Iterator[Line]:
    groups = not_ranked_groups(report)
    if not groups:
        return
    yield "", ""
    yield "bold", f"Not ranked ({len(report.not_ranked):,})"
    for group in groups[:MOST_GROUPS]:
        yield "", f"  {group.status}: {group.trials(MOST_LABELS)}: {group.reason}"
    left_out = sum(len(group.labels) for group in groups[MOST_GROUPS:])
    if left_out:
        yield "", f"  and {left_out:,} more for other reasons, all in leaderboard.md and results.csv"


def _findings(report: RunReport) -> Iterator[Line]:
    if not report.findings:
        return
    yield "", ""
    yield "bold", "Findings"
    for finding in report.findings[:MOST_FINDINGS]:
        words = finding_words(finding)
        yield "", f"  {words.sentence} {words.advice}".rstrip()
    left_out = len(report.findings) - MOST_FINDINGS
    if left_out > 0:
        yield "", f"  and {left_out:,} more in report.html"
