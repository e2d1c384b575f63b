"""Where one knob's effect depends on another: found where it is clear, and never in noise."""

import itertools
import random
from collections.abc import Callable

import pytest

from orchestrator.answer import build_report
from orchestrator.knob_interactions import Interaction
from tests.built_outcomes import completed, config, spec
from trainables.outcomes import TrialOutcome
from trainables.specs import TrainingConfig

Rate = Callable[[TrainingConfig], float]


def grid(rate: Rate, sizes: tuple[int, ...] = (64, 256), replicates: int = 1) -> list[TrialOutcome]:
    return [
        completed(spec(knobs := config(precision, size, mode), replicate=replicate), rate=rate(knobs))
        for precision, size, mode, replicate in itertools.product(
            ["fp32", "bf16"], sizes, ["off", "default"], range(replicates)
        )
    ]


def found(outcomes: list[TrialOutcome]) -> tuple[Interaction, ...]:
    return build_report(outcomes).interactions


def test_bf16_that_helps_less_once_compiled_is_found() -> None:
    def rate(knobs: TrainingConfig) -> float:
        return 1000 * (1 if knobs.precision == "fp32" else 1.9 if knobs.compile == "off" else 1.1)

    (one,) = found(grid(rate))
    assert (one.effect.knob, one.effect.after_value, one.by) == ("precision", "bf16", "compile")
    assert (one.first.value, one.second.value) == ("off", "default")
    assert (one.first.speedup.value, one.second.speedup.value) == pytest.approx((1.9, 1.1))
    assert one.contrast.value == pytest.approx(1.1 / 1.9)
    assert one.contrast.high < 1
    assert (one.contrasts, one.threshold) == (2, None)


def test_an_effect_that_is_the_same_everywhere_depends_on_nothing() -> None:
    def rate(knobs: TrainingConfig) -> float:
        return 1000 * (knobs.batch_size / 64) ** 0.5 * (1.9 if knobs.precision == "bf16" else 1)

    assert found(grid(rate)) == ()


def test_a_clear_difference_of_less_than_a_tenth_is_not_worth_knowing() -> None:
    def rate(knobs: TrainingConfig) -> float:
        return 1000 * (1.08 if knobs.compile == "default" and knobs.batch_size == 256 else 1)

    assert found(grid(rate, replicates=8)) == ()


def test_compile_that_helps_from_a_batch_size_up_has_a_threshold() -> None:
    def rate(knobs: TrainingConfig) -> float:
        gain = {32: 0.7, 64: 0.8, 128: 1.0, 256: 2.0, 512: 2.2}[knobs.batch_size]
        return 1000 * (gain if knobs.compile == "default" else 1)

    (one,) = found(grid(rate, sizes=(32, 64, 128, 256, 512)))
    assert one.threshold is not None
    assert (one.by, one.threshold.value, one.threshold.upwards) == ("batch_size", 256, True)
    assert one.threshold.inside.value == pytest.approx((2.0 * 2.2) ** 0.5)
    assert one.threshold.outside.high < 1


def test_a_threshold_may_be_one_up_to_which_it_helps() -> None:
    def rate(knobs: TrainingConfig) -> float:
        gain = {64: 2.2, 128: 2.0, 256: 1.0}[knobs.batch_size]
        return 1000 * (gain if knobs.compile == "default" else 1)

    (one,) = found(grid(rate, sizes=(64, 128, 256)))
    assert one.threshold is not None
    assert (one.threshold.value, one.threshold.upwards) == (128, False)


def test_what_helps_here_and_there_has_no_threshold() -> None:
    def rate(knobs: TrainingConfig) -> float:
        gain = {64: 2.0, 128: 1.0, 256: 2.0}[knobs.batch_size]
        return 1000 * (gain if knobs.compile == "default" else 1)

    (one,) = found(grid(rate, sizes=(64, 128, 256)))
    assert one.threshold is None


def test_noise_between_processes_is_hardly_ever_an_interaction() -> None:
    """Of 40 sweeps of 16 trials that no knob makes faster."""
    draw = random.Random(3)
    runs = [found(grid(lambda _: 1000 * draw.lognormvariate(0, 0.02), sizes=(64, 128, 256, 512))) for _ in range(40)]
    assert sum(bool(run) for run in runs) <= 2


def test_effects_at_values_that_were_not_run_alike_are_not_contrasted() -> None:
    """At the second batch size the learning rate is another one too."""
    outcomes = [
        completed(spec(config(batch_size=size, lr=lr, compile=mode)), rate=rate)
        for size, lr, gain in ((64, 1e-3, 0.5), (256, 4e-3, 2.0))
        for mode, rate in (("off", 1000.0), ("default", 1000.0 * gain))
    ]
    assert found(outcomes) == ()
