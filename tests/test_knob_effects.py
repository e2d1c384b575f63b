"""What each knob does, over all pairs that change it alone."""

import itertools
import math
import random
import statistics
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.answer import build_report
from orchestrator.comparison import Verdict
from orchestrator.effect_words import COMPILED_NOISE, effect_line, effect_notes
from orchestrator.knob_effects import KnobEffect, from_plainest
from tests.built_outcomes import completed, config, parts, spec
from trainables.outcomes import DeviceFacts, TrialOutcome


def effects_of(outcomes: Sequence[TrialOutcome]) -> tuple[KnobEffect, ...]:
    return build_report(outcomes).effects


def the_effect(knob: str, *outcomes: TrialOutcome) -> KnobEffect:
    (one,) = (effect for effect in effects_of(outcomes) if effect.knob == knob)
    return one


def compile_pair(speedup: float, accuracy: float = 0.97, eager: float = 0.97, **given: object) -> list[TrialOutcome]:
    knobs = {name: given.pop(name) for name in ("batch_size", "num_workers") if name in given}
    return [
        completed(spec(config(**knobs), **given), accuracy=eager),  # type: ignore[arg-type]
        completed(spec(config(compile="default", **knobs), **given), rate=1000 * speedup, accuracy=accuracy),  # type: ignore[arg-type]
    ]


def test_an_effect_is_the_geometric_mean_of_its_pairs_with_their_range() -> None:
    outcomes = [*compile_pair(0.70, batch_size=64), *compile_pair(0.54, batch_size=256)]
    effect = the_effect("compile", *outcomes)
    assert (effect.before_value, effect.after_value, len(effect.pairs)) == ("off", "default", 2)
    assert effect.speedup.value == pytest.approx(math.sqrt(0.70 * 0.54))
    assert (effect.lowest, effect.highest) == pytest.approx((0.54, 0.70))
    assert effect.verdict is Verdict.SLOWER


def test_one_pair_has_its_own_interval() -> None:
    effect = the_effect("compile", *compile_pair(1.2))
    assert effect.speedup == effect.pairs[0].speedup


def test_a_change_that_differs_between_configurations_is_no_noise() -> None:
    """A higher lr gains 4 points at one batch size and 8 at the other: clearly more than either's sampling error."""
    by_batch_size = {64: (0.90, 0.94), 256: (0.80, 0.88)}
    outcomes = [
        completed(spec(config(batch_size=batch_size, lr=lr)), accuracy=accuracy, images=10_000)
        for batch_size, accuracies in by_batch_size.items()
        for lr, accuracy in zip((1e-3, 2e-3), accuracies, strict=True)
    ]
    effect = the_effect("lr", *outcomes)
    assert effect.accuracy_change == pytest.approx(0.06)
    assert effect.accuracy_noise == pytest.approx(
        statistics.fmean(pair.accuracy_noise or math.nan for pair in effect.pairs)
    )
    assert "more than the ±" in effect_line(effect)


def test_accuracy_is_paired_by_seed() -> None:
    """Seeds differ by 20 points, compiled and not by one."""
    pairs = [
        *compile_pair(1.2, accuracy=0.50, eager=0.51, replicate=0),
        *compile_pair(1.2, accuracy=0.70, eager=0.71, replicate=1),
    ]
    effect = the_effect("compile", *(replace(one, validation_images=1_000_000) for one in pairs))
    assert effect.accuracy_change == pytest.approx(-0.01)
    assert effect.accuracy_noise is not None
    assert effect.accuracy_noise < 0.01
    assert effect.verdict is Verdict.COSTS_ACCURACY


def test_what_compiling_changes_within_the_noise_of_seeds_is_no_effect_of_it() -> None:
    """Compiled dropout draws another mask from the same seed."""
    pairs = [
        *compile_pair(1.5, accuracy=0.92, eager=0.90, replicate=0),
        *compile_pair(1.5, accuracy=0.88, eager=0.91, replicate=1),
        *compile_pair(1.5, accuracy=0.90, eager=0.93, replicate=2),
    ]
    effect = the_effect("compile", *(replace(one, validation_images=10_000) for one in pairs))
    assert effect.verdict is Verdict.FASTER
    assert "within the ±" in effect_line(effect)
    assert COMPILED_NOISE in effect_notes([effect])


def test_of_one_seed_the_noise_is_that_of_the_validation_sample() -> None:
    effect = the_effect("compile", *compile_pair(1.5, accuracy=0.965))
    interval = f"{effect.speedup.low:.2f}–{effect.speedup.high:.2f}"
    assert effect_line(effect) == (
        f"compile off → default: 1.50× [{interval}] over 1 pair, faster; accuracy −0.5 pt, within the ±2.8 pt of chance"
    )
    assert COMPILED_NOISE in effect_notes([effect])
    assert COMPILED_NOISE not in effect_notes([the_effect("precision", completed(), completed(spec(config("bf16"))))])


def test_a_larger_batch_is_compared_in_accuracy_where_its_lr_was_scaled_alone() -> None:
    small, large = completed(accuracy=0.97), completed(spec(config(batch_size=256)), accuracy=0.5)
    fair = completed(spec(config(batch_size=256, lr=4e-3)), accuracy=0.96)
    assert the_effect("batch_size", small, large).accuracy_change is None
    assert the_effect("batch_size", small, large, fair).accuracy_change == pytest.approx(-0.01)


def test_an_effect_says_how_many_of_its_pairs_wait_for_data() -> None:
    waiting, computing = parts(20_000.0, 1_000.0), parts(1_000.0, 20_000.0)
    pairs = [
        *(replace(one, diagnosis=waiting) for one in compile_pair(1.0, num_workers=1)),
        *(replace(one, diagnosis=computing) for one in compile_pair(1.0, num_workers=2)),
    ]
    effect = the_effect("num_workers", pairs[0], replace(pairs[2], diagnosis=waiting))
    assert (effect.data_bound, len(effect.pairs)) == (1, 1)
    (both,) = (effect for effect in effects_of(pairs) if effect.knob == "compile")
    assert (both.data_bound, len(both.pairs)) == (1, 2)
    assert "no clear difference, 1 pair data-bound; accuracy" in effect_line(both)


def test_knobs_come_in_their_order_and_values_from_the_plain_one() -> None:
    outcomes = [completed(spec(config(*knobs))) for knobs in itertools.product(["fp16", "fp32", "bf16"], [128, 64])]
    changes = [(effect.knob, effect.before_value, effect.after_value) for effect in effects_of(outcomes)]
    assert changes == [
        ("precision", "fp32", "fp16"),
        ("precision", "fp32", "bf16"),
        ("precision", "fp16", "bf16"),
        ("batch_size", 64, 128),
    ]
    assert [effect.after_value for effect in from_plainest(effects_of(outcomes))] == ["fp16", "bf16", 128]


def test_devices_are_not_taken_together() -> None:
    there = [replace(one, device=DeviceFacts(device="NVIDIA H200")) for one in compile_pair(2.0)]
    found = [effect.speedup.value for effect in effects_of([*compile_pair(0.5), *there])]
    assert sorted(found) == pytest.approx([0.5, 2.0])


GRID = list(itertools.product(["fp32", "bf16"], [64, 128, 256], ["off", "default"]))
rates = st.floats(200, 5000)


def numbers(effect: KnobEffect) -> tuple[object, ...]:
    speedup = effect.speedup
    return effect.knob, effect.before_value, effect.after_value, speedup.value, speedup.low, speedup.high


@settings(max_examples=20)
@given(st.lists(rates, min_size=len(GRID), max_size=len(GRID)), st.randoms(use_true_random=False))
def test_effects_depend_neither_on_the_order_of_results_nor_on_their_names(
    measured: list[float], shuffle: random.Random
) -> None:
    outcomes = [completed(spec(config(*knobs)), rate=rate) for knobs, rate in zip(GRID, measured, strict=True)]
    before = [numbers(effect) for effect in effects_of(outcomes)]
    renamed = [replace(one, spec=replace(one.spec, model="another", seed=7)) for one in outcomes]
    shuffle.shuffle(renamed)
    after = [numbers(effect) for effect in effects_of(renamed)]
    assert [values[:3] for values in after] == [values[:3] for values in before]
    assert [values[3:] for values in after] == [pytest.approx(values[3:]) for values in before]


@settings(max_examples=30)
@given(st.lists(st.tuples(rates, rates), min_size=1, max_size=4))
def test_inverse_pairs_have_the_inverse_effect(measured: list[tuple[float, float]]) -> None:
    """Each trial is given the rate of its twin."""

    def effect(order: int) -> KnobEffect:
        return the_effect(
            "compile",
            *(
                completed(spec(config(batch_size=64 * place, compile=mode)), rate=rate)
                for place, pair in enumerate(measured, start=1)
                for mode, rate in zip(("off", "default"), pair[::order], strict=True)
            ),
        )

    there, back = effect(1).speedup, effect(-1).speedup
    assert (there.value, there.low, there.high) == pytest.approx((1 / back.value, 1 / back.high, 1 / back.low))
