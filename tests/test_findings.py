"""Each kind of finding: the numbers that show it, and the words for it."""

import dataclasses
import re
from pathlib import Path
from typing import Any

import pytest

from orchestrator.answer import build_report
from orchestrator.finding_words import finding_words
from orchestrator.findings import Finding, FindingKind
from orchestrator.ranking import RankBy
from tests.built_outcomes import completed, config, ended, spec, windows
from trainables.measurements import CompileMeasurement, PrecisionMeasurement
from trainables.outcomes import Placement, TrialOutcome

QUIET: dict[str, Any] = {"images": 1_000_000}
"""So many validation images that no accuracy is in doubt."""


def found(
    *outcomes: TrialOutcome, tolerance: float = 0.005, rank_by: RankBy = RankBy.FASTEST_ACCURATE
) -> list[Finding]:
    return list(build_report(outcomes, accuracy_tolerance=tolerance, rank_by=rank_by).findings)


def only(kind: FindingKind, *outcomes: TrialOutcome) -> Finding:
    (one,) = (finding for finding in found(*outcomes) if finding.kind is kind)
    return one


def kinds(*outcomes: TrialOutcome) -> list[FindingKind]:
    return [finding.kind for finding in found(*outcomes)]


def sentence(finding: Finding) -> str:
    return finding_words(finding).sentence


def compiled(rate: float, batch_size: int = 64, **given: Any) -> TrialOutcome:
    measurement = CompileMeasurement(compile_seconds=8.0, **given)
    return completed(
        spec(config(compile="default", batch_size=batch_size)), rate=rate, compilation=measurement, **QUIET
    )


def test_a_quiet_run_has_no_findings() -> None:
    assert found(completed(**QUIET), completed(spec(config("bf16")), rate=2000.0, **QUIET)) == []
    assert found() == []


def test_learned_nothing_gives_chance_and_loss_beside_what_was_seen() -> None:
    dead = completed(spec(config(lr=0.1)), accuracy=0.1, loss=2.31, **QUIET)
    finding = only(FindingKind.LEARNED_NOTHING, completed(**QUIET), dead)
    assert sentence(finding) == (
        "1 trial learned nothing: accuracy 10.0 % is no better than guessing (10.0 %), and the loss 2.31 no better "
        "than ln(classes) = 2.30; the highest lr among them is 0.1."
    )
    assert finding_words(finding).trials == "fp32-b64-eager-lr0.1-w0"


def test_a_ranked_configuration_of_which_a_seed_did_not_complete_is_a_finding() -> None:
    finding = only(FindingKind.SEEDS_NOT_COMPLETED, completed(), ended("diverged", "NaN", spec(replicate=1)))
    assert sentence(finding) == (
        "Not every run of 1 configuration completed, such as 1 of 2 of fp32-b64-eager-lr0.001-w0; "
        "the others alone are ranked."
    )


def test_a_larger_batch_is_not_blamed_for_an_lr_that_was_not_moved() -> None:
    """FashionMNIST: batch 128 to 512 at one lr is .864 to .830."""
    small = completed(spec(config(batch_size=128, lr=3e-4)), accuracy=0.864, images=10_000)
    large = completed(spec(config(batch_size=512, lr=3e-4)), rate=2000.0, accuracy=0.830, images=10_000)
    finding = only(FindingKind.BATCH_SIZE_BLAMED_FOR_LR, small, large)
    assert "512 is less accurate than 128 at the same lr 0.0003 (−3.4 pt)" in sentence(finding)
    assert "batch size 512 at lr 0.0012, which was not run" in finding_words(finding).advice


def test_a_larger_batch_that_is_as_accurate_at_the_scaled_lr_is_cleared() -> None:
    """... and .865 once lr is scaled with it."""
    small = completed(spec(config(batch_size=128, lr=3e-4)), accuracy=0.864, images=10_000)
    large = completed(spec(config(batch_size=512, lr=3e-4)), rate=2000.0, accuracy=0.830, images=10_000)
    fair = completed(spec(config(batch_size=512, lr=1.2e-3)), rate=2000.0, accuracy=0.865, images=10_000)
    finding = only(FindingKind.BATCH_SIZE_CLEARED_BY_LR, small, large, fair)
    assert "but not at lr 0.0012, which was scaled with it (+0.1 pt)" in sentence(finding)
    assert FindingKind.BATCH_SIZE_BLAMED_FOR_LR not in kinds(small, large, fair)


def test_a_larger_batch_that_loses_at_the_scaled_lr_too_is_neither() -> None:
    outcomes = [
        completed(spec(config(batch_size=batch_size, lr=lr)), accuracy=accuracy, **QUIET)
        for batch_size, lr, accuracy in ((128, 3e-4, 0.9), (512, 3e-4, 0.8), (512, 1.2e-3, 0.8))
    ]
    assert not {FindingKind.BATCH_SIZE_BLAMED_FOR_LR, FindingKind.BATCH_SIZE_CLEARED_BY_LR} & set(kinds(*outcomes))


def test_a_tolerance_below_the_sampling_error_is_a_finding() -> None:
    finding = only(FindingKind.TOLERANCE_BELOW_SAMPLING_ERROR, completed(accuracy=0.98))
    assert "0.5 pt, is below the sampling error of an accuracy, ±0.8 pt at 98.0 % over 360 images" in sentence(finding)
    assert found(completed(accuracy=0.98), tolerance=0.01) == []
    assert found(completed(accuracy=0.98), rank_by=RankBy.IMAGES_PER_SECOND) == []


def test_compiling_that_slows_training_down_is_a_finding() -> None:
    finding = only(FindingKind.COMPILE_SLOWER, completed(**QUIET), compiled(400.0))
    assert sentence(finding) == (
        "Compiling made training slower in 1 of 1 matched pairs: 0.40× the speed, 0.40× at worst."
    )


def test_compiling_that_does_not_pay_for_itself_says_when_it_would() -> None:
    finding = only(FindingKind.COMPILE_NOT_PAID_BACK, completed(**QUIET), compiled(1250.0))
    assert sentence(finding) == (
        "Compiling did not pay for itself in 1 of 1 matched pairs: it took 8.0 s and trains 1.25× as fast, which earns "
        "that back after 26.7 epochs (40,000 images); 20 were trained."
    )
    assert kinds(completed(**QUIET), compiled(2000.0)) == []


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_half_precision_that_is_slower_is_a_finding(precision: str) -> None:
    slow = completed(spec(config(precision)), rate=77.0, **QUIET)
    finding = only(FindingKind.HALF_PRECISION_SLOWER, completed(**QUIET), slow)
    assert sentence(finding).startswith(f"{precision} was slower than fp32 in 1 of 1 matched pairs: 0.08× the speed")


def test_half_precision_that_is_no_faster_is_a_finding() -> None:
    finding = only(FindingKind.HALF_PRECISION_NO_GAIN, completed(**QUIET), completed(spec(config("bf16")), **QUIET))
    assert sentence(finding).startswith(
        "bf16 was not clearly faster than fp32 in 1 of 1 matched pairs: 1.00× the speed [0.94–1.07] in the middle one."
    )


def test_a_slow_pair_among_many_equal_ones_is_chance_and_no_finding() -> None:
    """1.96 standard errors happen once in forty equal pairs."""
    eager = [completed(spec(config(batch_size=size)), **QUIET) for size in range(64, 104)]
    equal = [compiled(1000.0, size) for size in range(64, 103)]
    assert kinds(*eager, *equal, compiled(940.0, 103)) == []
    assert kinds(*eager, *equal, compiled(700.0, 103))[0] is FindingKind.COMPILE_SLOWER


def compiled_at(gains: dict[int, float]) -> list[TrialOutcome]:
    """At each batch size an eager trial and a compiled one that is so many times as fast."""
    eager = [completed(spec(config(batch_size=size)), **QUIET) for size in gains]
    return [*eager, *(compiled(1000.0 * gain, size) for size, gain in gains.items())]


def test_a_knob_that_helps_more_at_one_value_of_another_is_a_finding() -> None:
    finding = only(FindingKind.KNOB_DEPENDS_ON_KNOB, *compiled_at({64: 2.0, 256: 4.0}))
    assert sentence(finding) == (
        "Changing compile from off to default gives 2.00× [1.87–2.13] at batch_size 64 and 4.00× [3.75–4.27] at "
        "batch_size 256: 2.00× as much [1.82–2.19]."
    )


def test_a_knob_that_helps_on_one_side_of_a_value_of_another_is_a_finding() -> None:
    finding = only(FindingKind.KNOB_HELPS_ON_ONE_SIDE, *compiled_at({64: 0.5, 128: 2.0, 256: 2.0}))
    assert sentence(finding).startswith(
        "Changing compile from off to default makes training faster only from batch_size 128 up: 2.00× ["
    )
    assert sentence(finding).endswith("] there, 0.50× [0.47–0.53] elsewhere.")


def test_windows_that_scatter_more_than_processes_are_unstable() -> None:
    scattered = dataclasses.replace(windows(1.0), window_seconds=(0.1, 0.16) * 15)
    finding = only(FindingKind.UNSTABLE_TIMING, completed(throughput=scattered, **QUIET))
    assert "windows scatter by up to 34.8 %" in sentence(finding)
    assert "more than the 2.0 % between processes" in sentence(finding)


def test_few_windows_are_too_short_to_measure() -> None:
    finding = only(FindingKind.TOO_SHORT_TO_MEASURE, completed(throughput=windows(100.0, count=4), **QUIET))
    assert "as few as 4, where 30 were asked for" in sentence(finding)
    assert kinds(completed(throughput=windows(100.0, count=10), **QUIET)) == []
    assert FindingKind.TOO_SHORT_TO_MEASURE in kinds(completed(rate=None, **QUIET))


def test_trials_beside_others_are_a_finding() -> None:
    finding = only(FindingKind.NEIGHBOURS, completed(placement=Placement(neighbours=3), **QUIET))
    assert sentence(finding) == (
        "1 trial ran beside other trials on the same node, up to 3; they may have slowed each other."
    )


def test_recompilations_and_graph_breaks_are_findings() -> None:
    broken = compiled(2000.0, graph_breaks=3, graph_break_reasons=("print() in forward",), recompilations=2)
    breaks = only(FindingKind.GRAPH_BREAKS, completed(**QUIET), broken)
    assert "up to 3, where compiled code falls back to Python; for instance: print() in forward." in sentence(breaks)
    again = only(FindingKind.RECOMPILATIONS, completed(**QUIET), broken)
    assert sentence(again) == "1 trial compiled again after the first time, up to 2 times."


def test_a_part_that_ran_eagerly_under_the_compile_label_is_a_finding() -> None:
    partly = compiled(2000.0, gave_up=True, eager_functions=("forward (model.py:12)", "block (model.py:40)"))
    finding = only(FindingKind.COMPILE_FELL_BACK, completed(**QUIET), partly)
    assert sentence(finding) == (
        "Under the compile label 1 trial ran a part of the model eagerly: 2 of its functions at most, for instance "
        "forward (model.py:12). In 1 of them the compiler gave up on a function that it had compiled too often."
    )
    assert partly.compilation is not None
    assert only(FindingKind.COMPILE_FELL_BACK, completed(**QUIET), compiled(2000.0, gave_up=True))


def test_steps_that_the_scaler_skipped_are_a_finding() -> None:
    skipping = PrecisionMeasurement(executed_precision="fp16", skipped_steps=4)
    finding = only(FindingKind.SKIPPED_STEPS, completed(spec(config("fp16")), precision=skipping, **QUIET))
    assert sentence(finding) == "The GradScaler skipped optimizer steps in 1 trial, up to 4."
    none = PrecisionMeasurement(executed_precision="fp16", skipped_steps=0)
    assert kinds(completed(spec(config("fp16")), precision=none, **QUIET)) == []


def test_measuring_on_a_copy_is_said() -> None:
    assert kinds(completed(throughput=windows(100.0, measured_on="copy"), **QUIET)) == [FindingKind.MEASURED_ON_COPY]


def test_a_grown_validation_set_is_said_to_carry_the_error_of_its_sources() -> None:
    grown = completed(accuracy=0.98, images=10_000, independent_validation_images=360)
    assert "The 10,000 validation images of digits were grown from 360 source images" in sentence(
        only(FindingKind.GROWN_VALIDATION_SET, grown)
    )
    assert "over 360 images" in sentence(only(FindingKind.TOLERANCE_BELOW_SAMPLING_ERROR, grown))


def test_accuracies_of_single_seeds_that_chance_explains_are_said_to_be_alike() -> None:
    outcomes = [
        completed(spec(config(lr=lr)), accuracy=accuracy) for lr, accuracy in ((1e-4, 0.98), (2e-4, 0.97), (3e-4, 0.5))
    ]
    assert sentence(only(FindingKind.SINGLE_SEED_ACCURACY, *outcomes)) == (
        "1 of 3 accuracies differ from the best by no more than chance explains, and each comes from one seed; "
        "one accuracy alone is uncertain by ±1.6 pt."
    )
    assert FindingKind.SINGLE_SEED_ACCURACY not in kinds(*outcomes, completed(spec(config(lr=1e-4), replicate=1)))


def test_what_trials_did_otherwise_than_asked_is_said_once_with_their_number() -> None:
    note = "persistent_workers was left out: there are no workers"
    outcomes = [completed(spec(config(lr=lr)), notes=(note, note), **QUIET) for lr in (1e-3, 2e-3)]
    assert sentence(only(FindingKind.NOTE, *outcomes)) == f"2 trials: {note}"


def test_findings_come_most_important_first() -> None:
    outcomes = [
        completed(notes=("a note",)),
        completed(spec(config(lr=0.1)), accuracy=0.1, loss=2.31),
        compiled(400.0, graph_breaks=1),
    ]
    assert kinds(*outcomes) == sorted(kinds(*outcomes), key=list(FindingKind).index)
    assert kinds(*outcomes)[0] is FindingKind.LEARNED_NOTHING


def test_reasons_from_peoples_code_stay_on_one_line() -> None:
    broken = compiled(2000.0, graph_breaks=1, graph_break_reasons=("line 1\n\x1b[31mline {2}",))
    assert "for instance: line 1 ?[31mline {2}." in sentence(only(FindingKind.GRAPH_BREAKS, completed(**QUIET), broken))


def test_every_kind_is_shown_to_occur_by_a_test_of_findings() -> None:
    texts = [path.read_text() for path in Path(__file__).parent.glob("test_*findings.py")]
    named = re.findall(r"FindingKind\.([A-Z][A-Z_]+)", "".join(texts))
    assert set(named) == set(FindingKind.__members__)
