"""The values of knobs: what is taken, and the sentence that refuses the rest."""

from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainables.knob_values import KNOB_RULES, parse_knob
from trainables.specs import KNOBS, CompileMode, Optimizer, Precision, TrainingConfig


def refusal(name: str, value: object) -> str:
    with pytest.raises(ValueError, match=r".") as caught:
        parse_knob(name, value)
    return str(caught.value)


def test_every_knob_of_a_configuration_has_a_rule() -> None:
    assert tuple(KNOB_RULES) == KNOBS


@pytest.mark.parametrize(
    ("name", "value", "meant"),
    [
        ("precision", "bf16", Precision.BF16),
        ("batch_size", 64, 64),
        ("compile", True, CompileMode.DEFAULT),
        ("compile", False, CompileMode.OFF),
        ("compile", "off", CompileMode.OFF),
        ("compile", "On", CompileMode.DEFAULT),
        ("compile", "no", CompileMode.OFF),
        ("compile", "default", CompileMode.DEFAULT),
        ("compile", "max-autotune", CompileMode.MAX_AUTOTUNE),
        ("lr", 0.001, 0.001),
        ("lr", 1, 1.0),
        ("num_workers", 0, 0),
        ("weight_decay", 0, 0.0),
        ("optimizer", "sgd", Optimizer.SGD),
        ("gradient_clip_norm", None, None),
        ("gradient_clip_norm", 1, 1.0),
        ("channels_last", "on", True),
        ("channels_last", False, False),
        ("prefetch_factor", 1, 1),
        ("persistent_workers", "no", False),
    ],
)
def test_a_value_becomes_what_it_means(name: str, value: object, meant: Any) -> None:
    parsed = parse_knob(name, value)
    assert (parsed, type(parsed)) == (meant, type(meant))


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("precision", "none", "must be one of fp32, tf32, fp16, bf16, got 'none'"),
        ("precision", "FP32", "must be one of fp32, tf32, fp16, bf16, got 'FP32'; did you mean 'fp32'?"),
        ("precision", None, "must be one of fp32, tf32, fp16, bf16, got nothing (null)"),
        ("batch_size", 0, "must be at least 1, got 0"),
        ("batch_size", True, "must be a whole number of at least 1, got true"),
        ("batch_size", 32.0, "must be a whole number of at least 1, got 32.0; write 32"),
        ("batch_size", 32.5, "must be a whole number of at least 1, got 32.5"),
        ("batch_size", float("inf"), "must be a whole number of at least 1, got inf"),
        ("batch_size", "64", "must be a whole number of at least 1, got '64'; write 64 without quotes"),
        ("batch_size", "1_000", "must be a whole number of at least 1, got '1_000'; write 1000 without quotes"),
        ("batch_size", "1:30", "must be a whole number of at least 1, got '1:30'"),
        ("batch_size", 2**31, "must be at most 2147483647, got 2147483648"),
        ("batch_size", [64], "must be a whole number of at least 1, got a list"),
        (
            "compile",
            "defualt",
            "must be true, false, or one of off, default, reduce-overhead, max-autotune, got 'defualt'; "
            "did you mean 'default'?",
        ),
        ("compile", 1, "must be true, false, or one of off, default, reduce-overhead, max-autotune, got 1"),
        (
            "compile",
            None,
            "must be true, false, or one of off, default, reduce-overhead, max-autotune, got nothing (null)",
        ),
        ("lr", 0, "must be above 0, got 0"),
        ("lr", -0.1, "must be above 0, got -0.1"),
        ("lr", True, "must be a number, got true"),
        ("lr", "1e-3", "must be a number, got '1e-3'; write 1e-3 without quotes"),
        ("lr", "fast", "must be a number, got 'fast'"),
        ("lr", "nan", "must be a number, got 'nan'"),
        ("lr", float("nan"), "must be a finite number, got nan"),
        ("lr", float("inf"), "must be a finite number, got inf"),
        ("lr", 10**400, f"must be a finite number, got {'1' + '0' * 59}…"),
        ("num_workers", -1, "must be at least 0, got -1"),
        ("num_workers", 2.0, "must be a whole number of at least 0, got 2.0; write 2"),
        ("weight_decay", -0.1, "must be at least 0, got -0.1"),
        ("optimizer", "adam", "must be one of adamw, sgd, got 'adam'; did you mean 'adamw'?"),
        ("gradient_clip_norm", 0, "must be above 0, got 0"),
        ("gradient_clip_norm", "none", "must be a number above 0, or null for no clipping, got 'none'"),
        ("channels_last", 1, "must be true or false, got 1"),
        ("prefetch_factor", 0, "must be at least 1, got 0"),
        ("prefetch_factor", None, "must be a whole number of at least 1, got nothing (null)"),
        ("persistent_workers", "maybe", "must be true or false, got 'maybe'"),
        ("persistent_workers", {"a": 1}, "must be true or false, got a mapping"),
    ],
)
def test_a_wrong_value_is_refused_with_what_is_allowed_and_what_was_given(
    name: str, value: object, message: str
) -> None:
    assert refusal(name, value) == message


def test_an_unknown_knob_is_refused_with_the_nearest_one() -> None:
    assert refusal("batchsize", 1).endswith("; did you mean 'batch_size'?")


@pytest.mark.parametrize("entry", fields(TrainingConfig), ids=lambda entry: entry.name)
def test_what_a_rule_takes_it_takes_again(entry: Any) -> None:
    for value in (0, 1, 2, 0.5, True, False, "fp16", "off", "default", "sgd", None):
        try:
            parsed = parse_knob(entry.name, value)
        except ValueError:
            continue
        assert parse_knob(entry.name, parsed) == parsed


anything = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.lists(st.integers())


@given(st.sampled_from(KNOBS), anything)
def test_any_value_is_taken_or_refused_in_words(name: str, value: object) -> None:
    try:
        message = f"must be {parse_knob(name, value)}"
    except ValueError as error:
        message = str(error)
    assert message.startswith("must be")


@given(st.sampled_from([name for name, rule in KNOB_RULES.items() if "number" in rule.allowed]), st.booleans())
def test_true_and_false_are_never_numbers(name: str, value: bool) -> None:
    refusal(name, value)
