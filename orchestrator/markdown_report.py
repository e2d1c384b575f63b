"""A report as Markdown (GitHub's), for leaderboard.md."""

import re
from collections.abc import Iterator

from orchestrator.answer import RunReport
from orchestrator.report_sections import Section, Table, sections

_MARKUP = re.compile(r"([\\`*_{}\[\]|~#])")


def render(report: RunReport) -> str:
    blocks = ["# Which training configuration to use"]
    for section in sections(report):
        blocks += _blocks(section)
    return "\n\n".join(blocks) + "\n"


def escaped(text: str) -> str:
    """Text that no reader of Markdown takes for markup or HTML: names and reasons come from people's code."""
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _MARKUP.sub(r"\\\1", text).replace("://", ":&#47;/")


def _blocks(section: Section) -> Iterator[str]:
    yield f"## {escaped(section.heading)}"
    yield from (escaped(paragraph) for paragraph in section.paragraphs)
    if section.items:
        yield "\n".join(f"- {escaped(item)}" for item in section.items)
    if section.table is not None:
        yield _table(section.table)
    yield from (escaped(note) for note in section.notes)


def _table(table: Table) -> str:
    rule = ["--:" if numeric else "---" for numeric in table.numeric]
    rows = [table.names, *table.rows]
    heading, *lines = (f"| {' | '.join(escaped(cell) for cell in row)} |" for row in rows)
    return "\n".join([heading, f"|{'|'.join(rule)}|", *lines])
