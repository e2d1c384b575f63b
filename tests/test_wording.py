"""Numbers and names as people read them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator import wording
from orchestrator.baseline_choice import EAGER_FP32, Baseline
from trainables.specs import CompileMode, Precision


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (wording.rate(12345.6), "12,346"),
        (wording.rate(84.25), "84.2"),
        (wording.rate(0.5312), "0.531"),
        (wording.ratio(2.1), "2.10×"),
        (wording.ratio(13.24), "13.2×"),
        (wording.ratio(1413.2), "1,413×"),
        (wording.interval(1.9, 2.3), "1.90–2.30"),
        (wording.half_width(1000, 1040), "4 %"),
        (wording.half_width(1000, 1004), "0.4 %"),
        (wording.percent(0.983), "98.3 %"),
        (wording.points(0.005), "0.5 pt"),
        (wording.signed_percent(-0.287), "−29 %"),
        (wording.signed_percent(0.04), "+4 %"),
        (wording.signed_percent(-0.001), "0 %"),
        (wording.signed_points(-0.001), "−0.1 pt"),
        (wording.signed_points(0.003), "+0.3 pt"),
        (wording.signed_points(-0.0001), "0.0 pt"),
        (wording.seconds(0.345), "0.34 s"),
        (wording.seconds(12.34), "12.3 s"),
        (wording.seconds(99.96), "1 min 40 s"),
        (wording.seconds(200), "3 min 20 s"),
        (wording.seconds(3599.9), "1 h 00 min"),
        (wording.seconds(7500), "2 h 05 min"),
        (wording.memory(340 * 2**20), "340 MiB"),
        (wording.memory(5 * 2**28), "1.25 GiB"),
        (wording.plural(1, "trial"), "1 trial"),
        (wording.plural(1200, "trial"), "1,200 trials"),
        (wording.some_of(["a", "b"], 2), "a, b"),
        (wording.some_of(["a", "b", "c"], 1), "a and 2 more"),
        (wording.plain_signs("2.1× [1.9–2.3] −0.1 ±…"), "2.1x [1.9-2.3] -0.1 +/-..."),
    ],
)
def test_a_quantity_is_shown_in_few_digits_with_its_unit(shown: str, expected: str) -> None:
    assert shown == expected


@given(st.text())
def test_foreign_text_becomes_one_line_without_control_characters(text: str) -> None:
    line = wording.one_line(text)
    assert len(line.splitlines()) <= 1
    assert len(line) <= 300
    assert not any(ord(sign) < 32 or 127 <= ord(sign) < 160 for sign in line)


def test_text_that_would_turn_the_line_around_is_defused() -> None:
    assert wording.one_line("a\u202egnirts") == "a?gnirts"


def test_a_baseline_is_named_by_its_knobs_unless_it_is_the_usual_one() -> None:
    other = Baseline(values=(("precision", Precision.BF16), ("compile", CompileMode.DEFAULT), ("num_workers", 0)))
    assert wording.baseline_words(other) == "bf16, compiled, no workers"
    assert wording.baseline_name(other) == "baseline (bf16, compiled, no workers)"
    assert wording.baseline_words(EAGER_FP32) == "fp32, not compiled"
    assert wording.baseline_name(EAGER_FP32) == "fp32 baseline"
