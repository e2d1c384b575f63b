"""The terminal report, rendered whole."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from orchestrator.answer import RunReport, build_report
from orchestrator.terminal_report import render
from tests import report_example
from tests.built_outcomes import completed, config, ended, spec
from trainables.outcomes import DeviceFacts

EXPECTED = Path(__file__).parent / "expected"


def rendered(report: RunReport, width: int, *, terminal: bool = True, run: str | None = None) -> str:
    output = io.StringIO()
    render(report, Console(file=output, width=width, force_terminal=terminal, color_system=None), run=run)
    return output.getvalue()


@pytest.mark.parametrize("width", [80, 120, 160])
def test_a_whole_report_in_a_terminal(width: int) -> None:
    expected = (EXPECTED / f"terminal_{width}.txt").read_text(encoding="utf-8")
    assert rendered(report_example.report(), width, run="runs/quick") == expected


def test_a_whole_report_that_is_piped_is_not_wrapped_and_has_plain_signs() -> None:
    text = rendered(report_example.report(), 80, terminal=False, run="runs/quick")
    assert text == (EXPECTED / "piped.txt").read_text(encoding="utf-8")
    assert text.isascii()


@pytest.mark.parametrize("width", [80, 100, 120, 160, 400])
def test_no_line_is_wider_than_the_terminal_or_160(width: int) -> None:
    assert max(map(len, rendered(report_example.report(), width).splitlines())) <= min(width, 160)


def test_peoples_text_neither_styles_nor_moves_the_terminal() -> None:
    output = io.StringIO()
    render(report_example.report(), Console(file=output, width=200, force_terminal=True, color_system="truecolor"))
    text = output.getvalue()
    assert "[red]label[/red] <script>" in text
    assert "\x1b[2J" not in text
    assert "\x1b[31m" not in text


def test_where_everything_failed_each_reason_is_shown_and_nothing_is_ranked() -> None:
    failed = [ended("failed", f"ValueError: bad label {number}", spec(config(lr=number))) for number in (1, 2)]
    assert rendered(build_report(failed), 100) == (
        "No configuration can be ranked: of 2 trials none qualifies (2 failed).\n"
        "\n"
        "Not ranked (2)\n"
        "  failed: fp32-b64-eager-lr1-w0: ValueError: bad label 1\n"
        "  failed: fp32-b64-eager-lr2-w0: ValueError: bad label 2\n"
        "\n"
        "2 trials: 2 failed; 0 configurations ranked\n"
    )


def test_a_report_of_nothing_says_so() -> None:
    assert rendered(build_report([]), 100) == (
        "No trial has finished, so there is nothing to rank.\n\n0 trials: none finished; 0 configurations ranked\n"
    )


def test_trials_of_one_reason_are_listed_together_and_many_reasons_are_cut_short() -> None:
    alike = [ended("lost", "node-3 is gone", spec(config(lr=number))) for number in range(1, 8)]
    text = rendered(build_report(alike), 160)
    assert "fp32-b64-eager-lr1-w0, fp32-b64-eager-lr2-w0, fp32-b64-eager-lr3-w0 and 4 more: node-3 is gone" in text
    different = [ended("failed", f"reason {number}", spec(config(lr=number))) for number in range(1, 31)]
    text = rendered(build_report(different), 160)
    assert text.count("  failed: ") == 12
    assert "and 18 more for other reasons" in text


def test_a_long_table_is_cut_short_and_says_by_how_much() -> None:
    text = rendered(build_report(completed(spec(config(lr=number / 1000))) for number in range(1, 100)), 160)
    assert "69 more in leaderboard.md and results.csv" in text
    assert len(text.splitlines()) < 80


def test_each_device_model_has_its_table_and_its_answer() -> None:
    devices = ["NVIDIA A100", "NVIDIA H200"]
    outcomes = [completed(device=DeviceFacts(device=device)) for device in devices]
    lines = rendered(build_report(outcomes), 160).splitlines()
    for device in devices:
        assert sum(line.startswith(f"{device}, 2 threads, digits_cnn on digits") for line in lines) == 2


def test_letters_that_the_output_cannot_hold_are_escaped() -> None:
    output = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    arabic = ended("failed", "خطأ", spec(config()))
    render(build_report([arabic]), Console(file=output, width=80))
    output.seek(0)
    assert r"\u062e\u0637\u0623" in output.read()


def test_foreign_letters_stay_where_the_output_holds_them() -> None:
    assert "خطأ" in rendered(build_report([ended("failed", "خطأ", spec(config()))]), 80, terminal=False)
