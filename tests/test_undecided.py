"""Who may still be the winner."""

from collections.abc import Sequence

import pytest

from orchestrator.matching import Matching
from orchestrator.ranking import RankBy, rank
from orchestrator.results import results_of
from orchestrator.undecided import undecided
from tests.built_outcomes import completed, config, spec
from trainables.outcomes import TrialOutcome

FASTEST = RankBy.FASTEST_ACCURATE


def run(batch_size: int, rate: float = 1000.0, accuracy: float | None = 0.97, replicate: int = 0) -> TrialOutcome:
    return completed(spec(config(batch_size=batch_size), replicate=replicate), rate=rate, accuracy=accuracy)


def contenders(outcomes: Sequence[TrialOutcome], rank_by: RankBy = FASTEST) -> list[int]:
    """Batch sizes: the leader's first."""
    matching = Matching(results_of(outcomes))
    (ranking,), _ = rank(matching, rank_by)
    found = undecided(ranking, rank_by, matching.seed_sd[ranking.key])
    return [standing.config.batch_size for standing in found]


def test_a_clear_winner_leaves_nothing_undecided() -> None:
    assert contenders([run(1, 2000.0), run(2, 1000.0), run(3, 900.0)]) == []
    assert contenders([run(1)]) == []


def test_those_that_may_be_faster_contend_and_the_fastest_challenger_comes_first() -> None:
    assert contenders([run(1, 1000.0), run(2, 950.0), run(3, 980.0), run(4, 700.0)]) == [1, 3, 2]


def test_practically_equal_speeds_are_decided() -> None:
    """One run each cannot show it; many alike runs of both can."""
    many = [run(size, rate, replicate=number) for size, rate in ((1, 1000.0), (2, 1001.0)) for number in range(12)]
    assert contenders(many[:1] + many[12:13]) == [2, 1]
    assert contenders(many) == []


def test_a_faster_one_whose_accuracy_seeds_may_have_lowered_contends() -> None:
    assert contenders([run(1, 1000.0, 0.97), run(2, 1500.0, 0.96)]) == [1, 2]
    assert contenders([run(1, 1000.0, 0.97), run(2, 1500.0, 0.90)]) == []


def test_a_leader_that_may_be_too_inaccurate_is_measured_against_the_most_accurate() -> None:
    assert contenders([run(1, 1500.0, 0.966), run(2, 700.0, 0.97)]) == [1, 2]


def test_what_learned_nothing_never_contends() -> None:
    lost = completed(spec(config(batch_size=2)), rate=1000.0, accuracy=0.1, loss=2.31)
    assert contenders([run(1), lost]) == []
    assert contenders([run(1), lost], RankBy.IMAGES_PER_SECOND) == []


@pytest.mark.parametrize("accuracy", [0.2, None])
def test_by_images_per_second_or_unscored_the_speed_alone_counts(accuracy: float | None) -> None:
    rule = FASTEST if accuracy is None else RankBy.IMAGES_PER_SECOND
    first = run(1, 1000.0, None if accuracy is None else 0.97)
    assert contenders([first, run(2, 1010.0, accuracy), run(3, 500.0, accuracy)], rule) == [2, 1]


def test_by_accuracy_those_that_seeds_may_lift_contend() -> None:
    runs = [run(1, accuracy=0.97), run(2, accuracy=0.962), run(3, accuracy=0.8)]
    assert contenders(runs, RankBy.ACCURACY) == [1, 2]
