"""What a knob takes: single values, lists and distributions."""

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.distributions import Choice, Fixed, Grid, RandInt, Uniform, read_knob
from trainables.faults import Faults
from trainables.specs import CompileMode, Precision
from trainables.yaml_reader import parse_yaml


def read(name: str, value: Any) -> tuple[Any, tuple[str, ...]]:
    faults = Faults()
    node = parse_yaml(json.dumps({"v": value}), "x.yaml", faults)
    assert node is not None
    assert isinstance(node.value, dict)
    return read_knob(name, node.value["v"], faults), faults.messages


@pytest.mark.parametrize(
    ("name", "value", "meant"),
    [
        ("compile", True, Fixed(value=CompileMode.DEFAULT)),
        ("precision", ["fp32", "bf16"], Grid(values=(Precision.FP32, Precision.BF16))),
        ("lr", {"uniform": [0.1, 1]}, Uniform(low=0.1, high=1.0, logarithmic=False)),
        ("lr", {"loguniform": [1e-4, 1e-2]}, Uniform(low=1e-4, high=1e-2, logarithmic=True)),
        ("batch_size", {"randint": [1, 9]}, RandInt(low=1, high=9)),
        ("compile", {"choice": [False, "default"]}, Choice(values=(CompileMode.OFF, CompileMode.DEFAULT))),
    ],
)
def test_values_are_read_and_written_back(name: str, value: Any, meant: Any) -> None:
    assert read(name, value) == (meant, ())
    assert read(name, meant.asked()) == (meant, ())


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("lr", [], "knobs.lr: must be a list of at least one value, got an empty list"),
        ("lr", [[1e-3]], "knobs.lr: must be a number, got a list"),
        ("lr", {"choice": []}, "knobs.lr.choice: must be a list of at least one value, got an empty list"),
        ("lr", {"choice": 3}, "knobs.lr.choice: must be a list of at least one value, got 3"),
        ("lr", {"choice": [0]}, "knobs.lr.choice: must be above 0, got 0"),
        (
            "lr",
            {"normal": [0, 1]},
            "knobs.lr: must have exactly one of uniform, loguniform, randint, choice, got normal",
        ),
        (
            "lr",
            {"unifrom": [0, 1]},
            "knobs.lr: must have exactly one of uniform, loguniform, randint, choice, got unifrom; "
            "did you mean 'uniform'?",
        ),
        (
            "lr",
            {"uniform": [0.1, 1], "choice": [1]},
            "knobs.lr: must have exactly one of uniform, loguniform, randint, choice, got uniform, choice",
        ),
        ("lr", {"uniform": [1]}, "knobs.lr.uniform: must be [low, high], got a list"),
        ("lr", {"uniform": 1}, "knobs.lr.uniform: must be [low, high], got 1"),
        ("lr", {"uniform": [0, 1]}, "knobs.lr.uniform: low must be above 0, got 0.0"),
        ("lr", {"uniform": [1, 0.1]}, "knobs.lr.uniform: must have low below high, got [1.0, 0.1]"),
        ("lr", {"uniform": [0.1, "1"]}, "knobs.lr.uniform: high must be a number, got '1'"),
        ("weight_decay", {"loguniform": [0, 1]}, "knobs.weight_decay.loguniform: must have low above 0, got 0.0"),
        ("gradient_clip_norm", {"uniform": [None, 1]}, "knobs.gradient_clip_norm.uniform: low must be a number"),
        ("batch_size", {"randint": [0, 9]}, "knobs.batch_size.randint: low must be at least 1, got 0"),
        ("batch_size", {"randint": [1, 9.0]}, "knobs.batch_size.randint: high must be a whole number of at least 1"),
        (
            "batch_size",
            {"uniform": [1, 9]},
            "knobs.batch_size.uniform: is for lr, weight_decay, gradient_clip_norm, and batch_size is a whole number",
        ),
        (
            "precision",
            {"randint": [1, 9]},
            "knobs.precision.randint: is for batch_size, num_workers, prefetch_factor, and precision is a text",
        ),
    ],
)
def test_a_wrong_distribution_is_refused(name: str, value: Any, message: str) -> None:
    _, messages = read(name, value)
    assert [found[: len("x.yaml:1: " + message)] for found in messages] == ["x.yaml:1: " + message]


def test_every_wrong_value_of_a_list_is_refused() -> None:
    assert read("batch_size", [64, 0, True])[1] == (
        "x.yaml:1: knobs.batch_size: must be at least 1, got 0",
        "x.yaml:1: knobs.batch_size: must be a whole number of at least 1, got true",
    )


bounds = st.tuples(st.floats(1e-9, 1e9), st.floats(1e-9, 1e9)).map(sorted).filter(lambda ends: ends[0] < ends[1])


@given(bounds, st.booleans(), st.integers())
def test_drawn_numbers_stay_within_their_ends_and_have_six_digits(
    ends: list[float], logarithmic: bool, seed: int
) -> None:
    low, high = ends
    drawn = Uniform(low=low, high=high, logarithmic=logarithmic).draw(random.Random(seed))
    assert low <= drawn <= high
    assert drawn in (low, high, float(f"{drawn:.6g}"))


def test_a_logarithmic_range_gives_every_factor_of_ten_its_share() -> None:
    generator = random.Random(0)
    drawn = [Uniform(low=1e-4, high=1e-1, logarithmic=True).draw(generator) for _ in range(3000)]
    shares = [sum(low <= value < low * 10 for value in drawn) / 3000 for low in (1e-4, 1e-3, 1e-2)]
    assert all(abs(share - 1 / 3) < 0.03 for share in shares)


def test_a_drawn_whole_number_never_reaches_the_upper_end() -> None:
    generator = random.Random(0)
    assert {RandInt(low=1, high=4).draw(generator) for _ in range(100)} == {1, 2, 3}


def test_a_value_written_twice_is_no_likelier() -> None:
    generator = random.Random(0)
    drawn = [Choice(values=(1, 2, 2, 2)).draw(generator) for _ in range(1000)]
    assert 400 < drawn.count(1) < 600
