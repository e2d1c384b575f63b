"""Results found by what they share."""

import pytest

from orchestrator.matching import Matching
from orchestrator.results import results_of
from tests.built_outcomes import completed, config, ended, spec
from trainables.outcomes import TrialOutcome


def matching(*outcomes: TrialOutcome) -> Matching:
    return Matching(results_of(outcomes))


def test_a_seed_that_learned_nothing_is_no_measure_of_how_seeds_scatter() -> None:
    runs = [completed(spec(replicate=run), accuracy=accuracy) for run, accuracy in enumerate((0.96, 0.98))]
    dead = completed(spec(replicate=2), accuracy=0.1, loss=2.31)
    found = matching(*runs, dead)
    assert list(found.seed_sd.values()) == [pytest.approx(0.02 / 2**0.5)]


def test_a_run_that_cannot_be_ranked_is_no_repeat() -> None:
    """Half a training may have been timed, but on a machine in trouble."""
    slow = ended("lost", "its node died", spec(replicate=1), throughput=completed(rate=1.0).throughput)
    assert [between.repeats for between in matching(completed(), slow).between.values()] == [0, 0]
    assert [between.repeats for between in matching(completed(), completed(spec(seed=3))).between.values()] == [1]


@pytest.mark.parametrize(("wanted", "found"), [(2e-3, 2.04e-3), (1.97e-3, 1.94e-3), (3e-3, None), (1e-4, None)])
def test_the_twin_with_a_learning_rate_is_the_nearest_within_5_percent(wanted: float, found: float | None) -> None:
    outcomes = [completed(spec(config(lr=lr))) for lr in (1e-3, 1.94e-3, 2.04e-3, 8e-3)]
    index = matching(*outcomes)
    twin = index.twin_with_lr(index.results[0], wanted)
    assert (twin.outcome.spec.config.lr if twin else None) == found


def test_the_rate_of_a_configuration_is_that_of_the_runs_that_have_one() -> None:
    index = matching(completed(rate=1000.0), completed(spec(replicate=1), rate=None))
    rate = index.rate_of_all(index.results)
    assert rate is not None
    assert rate.images_per_second == pytest.approx(1000.0)
    assert matching(completed(rate=None)).rate_of_all(matching(completed(rate=None)).results) is None


def test_trials_that_differ_in_lr_alone_tell_how_much_processes_differ() -> None:
    """Their speeds differ by 30 %, which an lr does not do: it is the machine."""
    by_lr = {1e-3: 1000.0, 2e-3: 1300.0, 4e-3: 900.0}
    outcomes = [completed(spec(config(lr=lr)), rate=rate) for lr, rate in by_lr.items()]
    (noisy,) = matching(*outcomes).between.values()
    (calm,) = matching(outcomes[0]).between.values()
    assert (noisy.repeats, calm.repeats) == (2, 0)
    assert noisy.sd > 0.08 > calm.sd
