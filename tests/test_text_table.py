"""Columns fitted to a width, by steps in a fixed order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.answer import build_report
from orchestrator.leaderboard import Column, leaderboard
from orchestrator.text_table import TextTable, text_table
from orchestrator.wording import plain_signs
from tests.built_outcomes import completed, config, spec
from trainables.specs import KNOBS


def column(name: str, short_name: str, *cells: str, drop_order: int | None = None, is_knob: bool = False) -> Column:
    return Column(
        name=name,
        short_name=short_name,
        cells=cells,
        short_cells=tuple(cell[:3] for cell in cells),
        drop_order=drop_order,
        is_knob=is_knob,
        numeric=not is_knob,
    )


COLUMNS = [
    column("precision", "precision", "bf16", "fp32", is_knob=True),
    column("batch_size", "batch", "64", "64", is_knob=True),
    column("images_per_second", "images/s", "12,345", "678"),
    column("interval", "±", "12,000–13,000", "600–700", drop_order=5),
    column("memory", "memory", "1.25 GiB", "340 MiB", drop_order=2),
    column("trial", "time", "12.3 s", "9.8 s", drop_order=0),
]


def fitted(width: int) -> TextTable:
    return text_table(COLUMNS, width)


@pytest.mark.parametrize(
    ("width", "heading", "caption"),
    [
        (80, "precision  batch_size  images_per_second       interval    memory   trial", None),
        (72, "precision  batch  images/s    ±  memory  time", None),
        (44, "precision  batch  images/s    ±  memory", None),
        (38, "precision  batch  images/s    ±", None),
        (30, "precision  images/s    ±", "The same in all rows: batch_size 64."),
        (23, "precision images/s   ±", "The same in all rows: batch_size 64."),
        (21, "precision images/s", "The same in all rows: batch_size 64."),
        (5, "precision images/s", "The same in all rows: batch_size 64."),
    ],
)
def test_less_room_takes_the_next_step(width: int, heading: str, caption: str | None) -> None:
    table = fitted(width)
    assert (table.heading, table.caption) == (heading, caption)


def test_numbers_end_and_words_start_at_the_edge_of_their_column() -> None:
    assert [fitted(80).heading, *fitted(80).lines] == [
        "precision  batch_size  images_per_second       interval    memory   trial",
        "bf16       64                     12,345  12,000–13,000  1.25 GiB  12.3 s",
        "fp32       64                        678        600–700   340 MiB   9.8 s",
    ]


@given(st.integers(1, 200))
def test_a_table_fits_or_has_nothing_left_to_leave_out(width: int) -> None:
    table = fitted(width)
    widest = max(map(len, (table.heading, *table.lines)))
    assert widest <= max(width, len("precision images/s"))
    assert "precision" in table.heading


def test_signs_are_made_plain_before_the_widths_are_taken() -> None:
    table = text_table(COLUMNS, 80, plain_signs)
    assert table.lines[0] == "bf16       64                     12,345  12,000-13,000  1.25 GiB  12.3 s"


def test_a_leaderboard_has_a_column_for_what_was_measured_and_for_each_knob_that_differs() -> None:
    outcomes = [
        completed(spec(config(channels_last=True)), peak_memory_bytes=2**31),
        completed(spec(config(channels_last=False)), peak_memory_bytes=340 * 2**20, accuracy=0.96),
    ]
    outcomes.append(completed(spec(config(channels_last=True), replicate=1)))
    (ranking,) = build_report(outcomes).rankings
    columns = {one.name: one.cells for one in leaderboard(ranking)}
    assert columns["channels_last"] == ("true", "false")
    assert columns["peak memory"] == ("2.00 GiB", "340 MiB")
    assert columns["runs"] == ("2", "")
    assert "compile time" not in columns
    assert "weight_decay" not in columns


def test_every_main_knob_is_in_the_leaderboard_also_where_all_rows_share_it() -> None:
    (ranking,) = build_report([completed()]).rankings
    names = [one.name for one in leaderboard(ranking) if one.is_knob]
    assert names == list(KNOBS[:5])


def test_an_unclear_speed_up_is_marked() -> None:
    outcomes = [completed(), completed(spec(config("bf16")), rate=1010.0), completed(spec(config("fp16")), rate=2000.0)]
    (ranking,) = build_report(outcomes).rankings
    columns = {one.name: one.cells for one in leaderboard(ranking)}
    assert columns["speed-up over fp32"] == ("2.00×", "~1.01×", "baseline")
