"""Columns of text fitted to a width, by steps in a fixed order, and laid out as lines."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from orchestrator.leaderboard import Column

MINOR = 5
"""Columns of a smaller drop order go before knobs move and the gap narrows; the others after."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextTable:
    heading: str
    lines: tuple[str, ...]
    caption: str | None
    """What is the same in all rows and was taken out to make room."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layout:
    """A way to draw the columns."""

    columns: tuple[Column, ...]
    common: tuple[Column, ...] = ()
    short: bool = False
    gap: int = 2

    def texts(self) -> list[tuple[str, ...]]:
        """Of each column, the heading and the cells."""
        return [
            (column.short_name, *column.short_cells) if self.short else (column.name, *column.cells)
            for column in self.columns
        ]

    def widths(self) -> list[int]:
        return [max(len(text) for text in texts) for texts in self.texts()]

    def width(self) -> int:
        widths = self.widths()
        return sum(widths) + self.gap * (len(widths) - 1)


def text_table(columns: Iterable[Column], width: int, signs: Callable[[str], str] = str) -> TextTable:
    """The first layout that fits: whole, then with short headings, then with less and less of what matters least.

    The steps: short forms; the measured columns of least weight left out; knobs that all rows share moved into the
    caption; a narrower gap; intervals and speed-ups left out. `signs` is applied to every text first. Where nothing
    fits, the narrowest is drawn all the same: a knob that differs is never left out.
    """
    layout = _Layout(columns=tuple(_translated(column, signs) for column in columns))
    for step in _steps(layout):
        layout = step(layout)
        if layout.width() <= width:
            break
    caption = ", ".join(f"{column.name} {column.cells[0]}" for column in layout.common)
    heading, *lines = _lines(layout)
    return TextTable(
        heading=heading, lines=tuple(lines), caption=f"The same in all rows: {caption}." if caption else None
    )


def _steps(layout: _Layout) -> list[Callable[[_Layout], _Layout]]:
    orders = sorted(column.drop_order for column in layout.columns if column.drop_order is not None)
    return [
        lambda whole: whole,
        lambda long: replace(long, short=True),
        *(_without(order) for order in orders if order < MINOR),
        _without_common_knobs,
        lambda loose: replace(loose, gap=1),
        *(_without(order) for order in orders if order >= MINOR),
    ]


def _without(order: int) -> Callable[[_Layout], _Layout]:
    def step(layout: _Layout) -> _Layout:
        return replace(layout, columns=tuple(column for column in layout.columns if column.drop_order != order))

    return step


def _without_common_knobs(layout: _Layout) -> _Layout:
    common = tuple(column for column in layout.columns if column.is_knob and column.only_cell is not None)
    return replace(layout, columns=tuple(column for column in layout.columns if column not in common), common=common)


def _translated(column: Column, signs: Callable[[str], str]) -> Column:
    return replace(
        column,
        name=signs(column.name),
        short_name=signs(column.short_name),
        cells=tuple(map(signs, column.cells)),
        short_cells=tuple(map(signs, column.short_cells)),
    )


def _lines(layout: _Layout) -> list[str]:
    """The heading and the rows. Numbers end at the right of their column, words start at its left."""
    padded: list[Sequence[str]] = [
        [text.rjust(width) if column.numeric else text.ljust(width) for text in texts]
        for column, texts, width in zip(layout.columns, layout.texts(), layout.widths(), strict=True)
    ]
    return [(" " * layout.gap).join(row).rstrip() for row in zip(*padded, strict=True)]
