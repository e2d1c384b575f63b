"""What the three rates of a loop show, in numbers and in words."""

from typing import Any

import pytest

from orchestrator.answer import build_report
from orchestrator.comparison import Verdict
from orchestrator.finding_words import finding_words
from orchestrator.findings import FindingKind
from tests.built_outcomes import completed, config, parts, spec
from tests.test_findings import QUIET, kinds, only, sentence
from trainables.measurements import MachineState
from trainables.outcomes import Placement, TrialOutcome


def waiting(
    rate: float = 9_074.0, compute: float = 21_000.0, loader: float = 9_800.0, *, cpus: int | None = None, **knobs: Any
) -> TrialOutcome:
    return completed(
        spec(config(**({"num_workers": 2} | knobs))),
        rate=rate,
        diagnosis=parts(compute, loader),
        machine=None if cpus is None else MachineState(node_cpus=cpus),
        placement=Placement(node="here", cpu_threads=2, neighbours=0),
        **QUIET,
    )


def advice(*outcomes: TrialOutcome) -> str:
    return finding_words(only(FindingKind.DATA_BOUND, *outcomes)).advice


def test_a_loop_that_waits_for_data_says_what_faster_compute_can_give_at_most() -> None:
    assert sentence(only(FindingKind.DATA_BOUND, waiting())) == (
        "1 trial waited for data, 56.8 % of the time at worst: there the loader feeds 9,800 images/s and compute alone "
        "could take 21,000, so a faster precision or compile can give at most 1.08× with num_workers 2."
    )


def test_what_to_do_about_a_slow_loader_depends_on_the_cores_that_are_left() -> None:
    assert advice(waiting()) == "Raise num_workers first, up to the cores that have nothing to do."
    assert advice(waiting(cpus=8)) == "Raise num_workers first: 4 cores of the node have nothing to do."
    assert advice(waiting(cpus=4)).startswith("No core of the node is left for more workers")


def test_a_faster_loader_of_the_same_run_is_named() -> None:
    """Loading in the process itself can beat workers, where images lie in memory."""
    faster = waiting(17_000.0, 21_000.0, 90_000.0, num_workers=0)
    assert advice(waiting(cpus=8), faster) == "Use num_workers 0: its loader feeds 90,000 images/s in this run."
    assert advice(waiting(cpus=8), waiting(lr=1e-2, loader=90_000.0)).startswith("Raise num_workers first")


def test_a_loop_that_computes_most_of_the_time_has_nothing_to_say() -> None:
    assert kinds(waiting(1000.0, 1010.0, 30_000.0)) == []


def test_pairs_that_wait_for_data_have_no_winner_and_name_what_compute_alone_does() -> None:
    """B06: the loop moved by a tenth, which is the loader's; compute alone is twice as fast."""
    fp32, bf16 = waiting(1000.0, 8_000.0, 1020.0), waiting(1100.0, 16_000.0, 1080.0, precision="bf16")
    report = build_report([fp32, bf16])
    assert not report.pairs[0].speedup.is_tie
    assert [pair.verdict for pair in report.pairs] == [Verdict.NO_CLEAR_DIFFERENCE]
    assert [effect.verdict for effect in report.effects] == [Verdict.NO_CLEAR_DIFFERENCE]
    found = only(FindingKind.DATA_BOUND_PAIR, fp32, bf16)
    assert sentence(found).startswith(
        "Both trials of 1 of 1 pairs of fp32 and bf16 waited for data: that the second trains 1.10× as fast says "
        "little about precision. Its compute alone is 2.00× as fast ("
    )
    assert 1.8 < found.evidence["compute_low"] < 2 < found.evidence["compute_high"] < 2.2  # type: ignore[operator]
    assert FindingKind.HALF_PRECISION_SLOWER not in kinds(fp32, bf16)


@pytest.mark.parametrize("compiled", [800.0, 1300.0])
def test_compiling_is_neither_blamed_nor_praised_where_both_twins_wait(compiled: float) -> None:
    eager = waiting(1000.0, 8_000.0, 1000.0)
    twin = waiting(compiled, 16_000.0, compiled, compile="default")
    assert set(kinds(eager, twin)) == {FindingKind.DATA_BOUND, FindingKind.DATA_BOUND_PAIR}


def test_pairs_of_another_knob_are_judged_by_the_loop() -> None:
    """More workers change the loader itself."""
    (pair,) = build_report([waiting(1000.0, 8_000.0, 1000.0), waiting(2000.0, 8_000.0, 2000.0, num_workers=4)]).pairs
    assert (pair.knob, pair.verdict) == ("num_workers", Verdict.FASTER)


def test_rates_that_do_not_fit_are_said() -> None:
    found = only(FindingKind.RATES_DISAGREE, waiting(7_000.0))
    assert sentence(found) == (
        "The three rates of 1 trial do not fit: where they differ most, compute alone at 21,000 images/s and the "
        "loader alone at 9,800 predict 9,800 together, and training ran at 7,000 (−29 %). What limits them is unclear."
    )
    assert FindingKind.DATA_BOUND not in kinds(waiting(7_000.0))
