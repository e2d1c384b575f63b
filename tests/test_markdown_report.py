"""leaderboard.md, rendered whole, and read again by a Markdown reader."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from orchestrator import markdown_report
from orchestrator.answer import build_report
from tests import report_example
from tests.built_outcomes import ended

EXPECTED = Path(__file__).parent / "expected" / "leaderboard.md"


def test_a_whole_report() -> None:
    assert markdown_report.render(report_example.report()) == EXPECTED.read_text(encoding="utf-8")


@given(st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), min_size=1).filter(lambda text: text.strip()))
def test_escaped_text_reads_as_itself(text: str) -> None:
    """In a paragraph that begins with a word of ours, as all of them do."""
    (_, inline, _) = MarkdownIt("gfm-like", {"linkify": False}).parse(f"word {markdown_report.escaped(text)}")
    assert [child.type for child in inline.children or []] == ["text"]
    assert (inline.children or [])[0].content == f"word {text}".rstrip()


def test_a_reason_with_a_bar_stays_in_its_cell() -> None:
    text = markdown_report.render(build_report([ended("failed", "a | b <br> [c](http://d)")]))
    (row,) = (line for line in text.splitlines() if line.startswith("| failed"))
    tokens = MarkdownIt("gfm-like", {"linkify": False}).parse(f"| s | t | r |\n|---|---|---|\n{row}")
    cells = [token.content for token in tokens if token.type == "inline"][3:]
    assert len(cells) == 3
    assert "<br>" not in row


@pytest.mark.parametrize("outcomes", [[], [ended("failed", "no")]])
def test_a_report_with_nothing_ranked_has_no_leaderboard(outcomes: list[object]) -> None:
    text = markdown_report.render(build_report(outcomes))  # type: ignore[arg-type]
    assert "## Answer" in text
    assert "Leaderboard" not in text
