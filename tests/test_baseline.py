"""A configuration against the same one in fp32 and without compile."""

import pytest

from orchestrator.baseline import AgainstBaseline, NoBaseline, against_baseline
from orchestrator.baseline_choice import EAGER_FP32, Baseline
from orchestrator.matching import Matching
from orchestrator.results import results_of
from tests.built_outcomes import completed, config, ended, spec
from trainables.outcomes import TrialOutcome
from trainables.specs import CompileMode

FAST = config("bf16", 256, "default")
PLAIN = config("fp32", 256, "off")


def against(*outcomes: TrialOutcome, baseline: Baseline | None = EAGER_FP32) -> AgainstBaseline:
    """Of the configuration `FAST`."""
    results = results_of(outcomes)
    own = [result for result in results if result.outcome.spec.config == FAST]
    return against_baseline(Matching(results), own, baseline)


def test_the_baseline_is_the_twin_with_all_other_knobs_and_the_seed_the_same() -> None:
    found = against(
        completed(spec(FAST), rate=3000.0, accuracy=0.96),
        completed(spec(PLAIN), rate=1500.0, accuracy=0.97),
        completed(spec(config("fp32", 64)), rate=100.0),
        completed(spec(PLAIN, seed=1), rate=100.0),
        completed(spec(config("fp32", 256, "off", 2e-3)), rate=100.0),
    )
    assert found.missing is None
    assert [twin.outcome.spec.config for twin in found.twins] == [PLAIN]
    assert found.speedup is not None
    assert found.speedup.value == pytest.approx(2.0)
    assert found.accuracy_change == pytest.approx(-0.01)
    assert not found.loses_accuracy


def test_without_a_twin_nothing_is_compared() -> None:
    found = against(completed(spec(FAST)), completed(spec(config("fp32", 64))))
    assert found == AgainstBaseline(missing=NoBaseline.NOT_RUN)


def test_a_twin_that_did_not_complete_is_named_and_not_compared() -> None:
    found = against(completed(spec(FAST)), ended("out_of_memory", asked=spec(PLAIN)))
    assert found.missing is NoBaseline.NOT_COMPLETED
    assert found.speedup is None
    assert [twin.outcome.status for twin in found.twins] == ["out_of_memory"]


def test_seeds_are_compared_pair_by_pair() -> None:
    """The third run of the fast one has no twin, and must not move the comparison."""
    runs = [completed(spec(FAST, replicate=run), rate=2000.0, accuracy=0.95 + run / 100) for run in range(2)]
    runs.append(completed(spec(FAST, replicate=2), rate=9000.0, accuracy=0.5))
    twins = [completed(spec(PLAIN, replicate=run), accuracy=0.96 + run / 100) for run in range(2)]
    found = against(*runs, *twins)
    assert len(found.twins) == 2
    assert found.speedup is not None
    assert found.speedup.value == pytest.approx(2.0)
    assert found.accuracy_change == pytest.approx(-0.01)


def test_another_baseline_is_the_twin_in_its_knobs_alone() -> None:
    eager = Baseline(values=(("compile", CompileMode.OFF),))
    outcomes = [
        completed(spec(FAST), rate=3000.0),
        completed(spec(config("bf16", 256)), rate=2000.0),
        completed(spec(PLAIN)),
    ]
    found = against(*outcomes, baseline=eager)
    assert found.speedup is not None
    assert found.speedup.value == pytest.approx(1.5)
    itself = Baseline(values=(("batch_size", 256),))
    assert against(*outcomes, baseline=itself) == AgainstBaseline(missing=NoBaseline.IS_BASELINE)


def test_where_no_baseline_is_asked_for_there_is_none() -> None:
    outcomes = [completed(spec(FAST)), completed(spec(PLAIN))]
    assert against(*outcomes, baseline=None) == AgainstBaseline(missing=NoBaseline.NOT_ASKED)


def test_an_unscored_data_set_gives_a_speed_up_alone() -> None:
    found = against(completed(spec(FAST), accuracy=None), completed(spec(PLAIN), accuracy=None))
    assert found.speedup is not None
    assert (found.accuracy_change, found.accuracy_noise) == (None, None)
