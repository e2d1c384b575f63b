"""Constraints: what they decide, and what they refuse to be."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.constraints import parse_constraint
from trainables.specs import CompileMode, Precision, TrainingConfig, config_to_mapping

CONFIG = TrainingConfig(precision=Precision.BF16, batch_size=64, compile=CompileMode.OFF, lr=3e-4, num_workers=2)


def decided(text: str, **changes: Any) -> bool:
    return parse_constraint(text).allows(config_to_mapping(CONFIG) | changes)


def refusal(text: object) -> str:
    with pytest.raises(ValueError, match=r".") as caught:
        parse_constraint(text)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("batch_size >= 64", True),
        ("32 < batch_size <= 64", True),
        ("32 < batch_size < 64", False),
        ("precision == 'bf16' and num_workers == 2", True),
        ("precision != 'bf16' or num_workers != 2", False),
        ("not (compile == 'default' and batch_size < 64)", True),
        ("precision in ('fp16', 'bf16')", True),
        ("precision in ['fp16', \"fp32\"]", False),
        ("batch_size not in (64,)", False),
        ("compile == 'off'", True),
        ("compile == False", True),
        ("compile == false", True),
        ("compile != True", True),
        ("compile in (true, 'max-autotune')", False),
        ("lr == 3e-4", True),
        ("lr < 1e-3", True),
        ("-1 < num_workers", True),
        ("persistent_workers", True),
        ("not channels_last", True),
        ("channels_last == false", True),
        ("gradient_clip_norm == None", True),
        ("gradient_clip_norm == null or gradient_clip_norm < 1", True),
        ("gradient_clip_norm != None and gradient_clip_norm < 1", False),
        ("batch_size > num_workers", True),
        ("64 == batch_size == 64", True),
        ("3e-4 in (lr, weight_decay)", True),
        ("batch_size ==\n  64", True),
    ],
)
def test_a_constraint_decides(text: str, holds: bool) -> None:
    assert decided(text) is holds


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("__import__('os').system('x')", "__import__('os').system('x') is no condition; a constraint has only"),
        ("batch_size.real == 1", "batch_size.real is not allowed; a constraint has only"),
        ("lr == [1][0]", "[1][0] is not allowed"),
        ("lr + 1 == 2", "lr + 1 is not allowed"),
        ("lr == 2 ** 9", "2 ** 9 is not allowed"),
        ("lr == 1 if True else 2", "lr == 1 if True else 2 is no condition"),
        ("(lambda: True)()", "(lambda: True)() is no condition"),
        ("[x for x in (1,)]", "[x for x in (1,)] is no condition"),
        ("(x := 1) == lr", "(x := 1) is not allowed"),
        ("f'{lr}' == 'x'", "f'{lr}' is not allowed"),
        ("lr == b'x'", "b'x' is not allowed"),
        ("lr is 1", "lr is compared with an operator that is not known"),
        ("True", "True is no condition"),
        ("3 < 4", "names no knob, and so says the same of every configuration"),
        ("compile and batch_size < 3", "compile is no condition; compare it, as in compile == …"),
        ("batch_sise < 3", "batch_sise is no knob; there are precision, batch_size"),
        ("batchsize", "batchsize is no condition; batchsize is no knob; there are"),
        ("compile == off", "off is no knob; as a value of compile it is written in quotes, 'off'"),
        ("precision == fp16", "fp16 is no knob; as a value of precision it is written in quotes, 'fp16'"),
        ("precision == 'bf61'", "compares precision with 'bf61', which it never is: must be one of"),
        ("precision in ('fp32', 'half')", "compares precision with 'half', which it never is"),
        ("batch_size == 64.0", "compares batch_size with 64.0, which it never is: must be a whole number"),
        ("batch_size == '64'", "compares batch_size with '64', which it never is"),
        ("num_workers == -1", "compares num_workers with -1, which it never is: must be at least 0"),
        ("lr == True", "compares lr with True, which it never is"),
        ("precision < 'x'", "precision has no order (fp32, tf32, fp16, bf16); compare it with ==, != or in"),
        ("batch_size < '64'", "'64' has no order; numbers alone are compared"),
        ("batch_size < True", "True has no order; numbers alone are compared"),
        ("batch_size in 64", "in needs a list of values at its right, such as (64, 256), got 64"),
        ("batch_size in ()", "in needs a list of values at its right, such as (64, 256), got ()"),
        ("batch_size = 3", "'batch_size = 3' is no expression"),
        ("a && b", "'a && b' is no expression"),
        ("", "'' is no expression"),
        ("(" * 500, f"'{'(' * 59}… is no expression"),
        ("x" * 3000, "must be at most 2000 characters long, got 3000"),
        (3, "must be text, such as batch_size >= 64 or compile == 'off', got 3"),
        (None, "must be text, such as batch_size >= 64 or compile == 'off', got nothing (null)"),
    ],
)
def test_anything_else_is_refused(text: object, message: str) -> None:
    assert refusal(text).startswith(message)


def test_values_without_an_order_are_said_not_raised() -> None:
    with pytest.raises(ValueError, match="gradient_clip_norm < 1: cannot be decided for gradient_clip_norm nothing"):
        decided("gradient_clip_norm < 1")


@given(st.integers(1, 500), st.integers(1, 500), st.sampled_from(["<", "<=", ">", ">=", "==", "!="]))
def test_comparisons_agree_with_python(size: int, bound: int, sign: str) -> None:
    expected = {
        "<": size < bound,
        "<=": size <= bound,
        ">": size > bound,
        ">=": size >= bound,
        "==": size == bound,
        "!=": size != bound,
    }[sign]
    assert decided(f"batch_size {sign} {bound}", batch_size=size) is expected
    assert decided(f"not batch_size {sign} {bound}", batch_size=size) is not expected


tokens = st.sampled_from(
    [
        "batch_size",
        "compile",
        "lr",
        "'off'",
        "64",
        "(",
        ")",
        "and",
        "or",
        "not",
        "in",
        "==",
        "<",
        ",",
        "[",
        "]",
        ".x",
        "()",
    ]
)


@given(st.lists(tokens, max_size=12).map(" ".join))
def test_any_text_is_a_constraint_or_is_refused_in_words(text: str) -> None:
    try:
        constraint = parse_constraint(text)
    except ValueError as error:
        message = str(error)
    else:
        message = f"decides {constraint.allows(config_to_mapping(CONFIG))}"
    assert message
