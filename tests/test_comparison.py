"""Matched pairs, their verdicts, and the break-even of compiling."""

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.comparison import MatchedPair, Verdict, matched_pairs
from orchestrator.matching import Matching
from orchestrator.results import results_of
from tests.built_outcomes import completed, config, ended, spec
from trainables.measurements import PrecisionMeasurement
from trainables.outcomes import DeviceFacts, TrialOutcome
from trainables.specs import MeasurementProtocol


def pairs_of(*outcomes: TrialOutcome) -> list[MatchedPair]:
    return list(matched_pairs(Matching(results_of(outcomes))))


def summary(pair: MatchedPair) -> tuple[str, object, object]:
    return pair.knob, pair.before_value, pair.after_value


def test_trials_that_differ_in_exactly_one_knob_are_pairs() -> None:
    outcomes = [
        completed(spec(config(precision, batch_size)))
        for precision, batch_size in itertools.product(["fp32", "bf16"], [64, 256])
    ]
    assert sorted(map(summary, pairs_of(*outcomes))) == [
        ("batch_size", 64, 256),
        ("batch_size", 64, 256),
        ("precision", "fp32", "bf16"),
        ("precision", "fp32", "bf16"),
    ]


@pytest.mark.parametrize(
    "other",
    [
        completed(spec(config("bf16"), seed=1)),
        completed(spec(config("bf16"), replicate=1)),
        completed(spec(config("bf16"), model="other")),
        completed(spec(config("bf16"), dataset_args={"train_limit": 9})),
        completed(spec(config("bf16"), protocol=MeasurementProtocol(epochs=19))),
        completed(spec(config("bf16"), code_fingerprint="changed")),
        completed(spec(config("bf16")), device=DeviceFacts(device="NVIDIA H200")),
        completed(spec(config("bf16"), data_fingerprint="changed")),
        completed(spec(config("bf16")), measurement_version=2),
        completed(spec(config("bf16")), rate=None),
        completed(spec(config("bf16")), precision=PrecisionMeasurement(executed_precision="fp32")),
        ended("diverged", asked=spec(config("bf16"))),
        completed(spec(config("bf16", 128))),
    ],
)
def test_what_differs_in_more_or_cannot_be_compared_is_no_pair(other: TrialOutcome) -> None:
    assert pairs_of(completed(), other) == []


def test_further_knobs_make_pairs_too() -> None:
    pairs = pairs_of(completed(), completed(spec(config(channels_last=True, weight_decay=1e-2))))
    assert [summary(pair) for pair in pairs] == [("channels_last", False, True)]
    pairs = pairs_of(completed(), completed(spec(config(gradient_clip_norm=1.0))))
    assert [summary(pair) for pair in pairs] == [("gradient_clip_norm", None, 1.0)]


def test_before_is_the_plainer_value() -> None:
    modes = [completed(spec(config(compile=mode))) for mode in ("max-autotune", "off", "default")]
    assert [summary(pair)[1:] for pair in pairs_of(*modes)] == [
        ("off", "default"),
        ("off", "max-autotune"),
        ("default", "max-autotune"),
    ]


@pytest.mark.parametrize(
    ("rate", "accuracy", "verdict"),
    [
        (2000.0, 0.97, Verdict.FASTER),
        (500.0, 0.97, Verdict.SLOWER),
        (1010.0, 0.97, Verdict.NO_CLEAR_DIFFERENCE),
        (2000.0, 0.90, Verdict.COSTS_ACCURACY),
        (2000.0, 0.96, Verdict.FASTER),
        (2000.0, None, Verdict.FASTER),
        (500.0, 0.90, Verdict.SLOWER),
    ],
)
def test_the_verdict_weighs_speed_against_accuracy_beyond_its_noise(
    rate: float, accuracy: float | None, verdict: Verdict
) -> None:
    """At 360 images and .97 the noise of a difference is 2.5 points or so."""
    (pair,) = pairs_of(completed(), completed(spec(config("bf16")), rate=rate, accuracy=accuracy))
    assert pair.verdict is verdict
    assert pair.speedup.value == pytest.approx(rate / 1000)


def test_a_difference_within_what_seeds_scatter_by_is_not_laid_to_the_knob() -> None:
    """Compiled dropout draws another mask: repeats say that accuracy moves by as much without it (B17)."""
    eager = [
        completed(spec(replicate=run), accuracy=accuracy, images=10_000) for run, accuracy in enumerate((0.90, 0.93))
    ]
    compiled = completed(spec(config(compile="default")), rate=2000.0, accuracy=0.87, images=10_000)
    alone = next(pair for pair in pairs_of(eager[0], compiled) if pair.knob == "compile")
    among_seeds = next(pair for pair in pairs_of(*eager, compiled) if pair.knob == "compile")
    assert alone.verdict is Verdict.COSTS_ACCURACY
    assert among_seeds.verdict is Verdict.FASTER
    assert among_seeds.accuracy_change == pytest.approx(-0.03)


@pytest.mark.parametrize(("lr", "rule"), [(4e-3, "linear"), (2e-3, "sqrt"), (2.05e-3, "sqrt")])
def test_a_batch_size_pair_names_the_twin_whose_lr_was_scaled_with_it(lr: float, rule: str) -> None:
    scaled = completed(spec(config(batch_size=256, lr=lr)), accuracy=0.98)
    pairs = pairs_of(completed(), completed(spec(config(batch_size=256)), accuracy=0.9), scaled)
    (pair,) = (pair for pair in pairs if pair.knob == "batch_size")
    assert pair.scaled_lr is not None
    assert pair.scaled_lr.result.outcome is scaled
    assert pair.scaled_lr.rule == rule
    assert pair.scaled_lr.accuracy_change == pytest.approx(0.01)


def test_linear_scaling_is_preferred_and_other_learning_rates_are_no_fair_twins() -> None:
    plain, large = completed(), completed(spec(config(batch_size=256)))
    both = [completed(spec(config(batch_size=256, lr=lr))) for lr in (2e-3, 4e-3)]
    (pair,) = (pair for pair in pairs_of(plain, large, *both) if pair.knob == "batch_size")
    assert pair.scaled_lr is not None
    assert pair.scaled_lr.rule == "linear"
    far = completed(spec(config(batch_size=256, lr=3e-3)))
    (pair,) = (pair for pair in pairs_of(plain, large, far) if pair.knob == "batch_size")
    assert pair.scaled_lr is None


def test_pairs_grow_with_the_number_of_trials_and_not_with_its_square() -> None:
    """A random search over one knob puts all trials into one group."""
    outcomes = [completed(spec(config(lr=1e-4 * (1 + index / 100)))) for index in range(500)]
    assert len(pairs_of(*outcomes)) == 499


@given(st.randoms(use_true_random=False))
def test_pairs_do_not_depend_on_the_order_of_the_outcomes(shuffle: random.Random) -> None:
    outcomes = [
        completed(spec(config(precision, batch_size, lr=lr)), rate=1000.0 + batch_size)
        for precision, batch_size, lr in itertools.product(["fp32", "bf16"], [32, 64, 128], [1e-3, 2e-3])
    ]
    before = [(summary(pair), pair.before.trial_id, pair.speedup) for pair in pairs_of(*outcomes)]
    shuffle.shuffle(outcomes)
    assert [(summary(pair), pair.before.trial_id, pair.speedup) for pair in pairs_of(*outcomes)] == before
