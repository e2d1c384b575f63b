"""Who may be ranked, in which order, and who ties."""

import dataclasses
import itertools
import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.matching import Matching
from orchestrator.ranking import NotRanked, RankBy, Ranking, rank
from orchestrator.results import results_of
from tests.built_outcomes import completed, config, ended, spec, windows
from trainables.measurements import LearningCurve, PrecisionMeasurement
from trainables.outcomes import DeviceFacts, Placement, TrialOutcome, TrialStatus
from trainables.specs import MeasurementProtocol

LRS = [1e-4, 2e-4, 3e-4, 4e-4, 5e-4, 6e-4]


def ranked(
    *outcomes: TrialOutcome, rank_by: RankBy = RankBy.FASTEST_ACCURATE, tolerance: float = 0.005
) -> tuple[tuple[Ranking, ...], tuple[NotRanked, ...]]:
    return rank(Matching(results_of(outcomes)), rank_by, tolerance)


def places(ranking: Ranking) -> list[tuple[int, float]]:
    """Rank and learning rate, which names the configuration, in the order of the ranking."""
    return [(standing.rank, standing.config.lr) for standing in ranking.standings]


def trials(*speeds_and_accuracies: tuple[float, float | None]) -> list[TrialOutcome]:
    """The nth has the nth of `LRS`, and a batch size of its own: trials that differ in lr alone are equally fast."""
    return [
        completed(spec(config(batch_size=64 + n, lr=LRS[n])), rate=rate, accuracy=accuracy)
        for n, (rate, accuracy) in enumerate(speeds_and_accuracies)
    ]


def test_the_fastest_of_those_within_the_tolerance_comes_first_and_the_rest_by_accuracy() -> None:
    (ranking,), _ = ranked(*trials((1000, 0.98), (2000, 0.976), (9000, 0.97), (500, 0.974), (3000, 0.9)))
    assert places(ranking) == [(1, 2e-4), (2, 1e-4), (3, 4e-4), (4, 3e-4), (5, 5e-4)]
    assert [standing.within_tolerance for standing in ranking.standings] == [True, True, False, False, False]
    assert ranking.best_accuracy == 0.98


def test_the_edge_of_the_tolerance_is_within_it_in_spite_of_floating_point() -> None:
    (ranking,), _ = ranked(*trials((1000, 0.98), (2000, 0.975)))
    assert places(ranking) == [(1, 2e-4), (2, 1e-4)]


def test_a_tie_is_with_the_fastest_of_the_rank_and_leaves_the_next_places_empty() -> None:
    """The 95 % interval of a ratio reaches 5.7 %: 960 ties with 1000, 920 with 960 but not with 1000."""
    (ranking,), _ = ranked(*trials((1000, 0.98), (960, 0.98), (920, 0.98), (900, 0.98), (500, 0.98)))
    assert places(ranking) == [(1, 1e-4), (1, 2e-4), (3, 3e-4), (3, 4e-4), (5, 5e-4)]
    assert [standing.config.lr for standing in ranking.leaders] == [1e-4, 2e-4]


def test_an_uncertain_rate_ties_with_the_leader_past_a_certain_one() -> None:
    outcomes = trials((1000, 0.98), (930, 0.98))
    shaky = dataclasses.replace(windows(900.0), window_seconds=(128 / 750, 128 / 1050) * 15)
    outcomes.append(completed(spec(config(batch_size=66, lr=3e-4)), accuracy=0.98, throughput=shaky))
    (ranking,), _ = ranked(*outcomes)
    assert places(ranking) == [(1, 1e-4), (1, 3e-4), (3, 2e-4)]


def test_a_tie_is_not_won_by_a_precision_that_is_emulated() -> None:
    """The emulated one has the higher median, by less than the interval of the ratio."""
    emulated = PrecisionMeasurement(executed_precision="bf16", emulated=True)
    (ranking,), _ = ranked(
        completed(spec(config("bf16")), rate=1010.0, precision=emulated), completed(spec(config("fp32")), rate=1000.0)
    )
    assert [(standing.rank, standing.config.precision) for standing in ranking.standings] == [(1, "fp32"), (1, "bf16")]


def test_a_rate_that_its_windows_hardly_tell_does_not_tie_with_the_leader() -> None:
    wild = dataclasses.replace(windows(900.0, count=6), window_seconds=(0.2, 20.0, 0.4, 40.0, 0.2, 20.0))
    (ranking,), _ = ranked(
        *trials((1000, 0.98)), completed(spec(config(num_workers=4)), accuracy=0.98, throughput=wild)
    )
    assert [(standing.rank, standing.config.num_workers) for standing in ranking.standings] == [(1, 0), (2, 4)]


def test_beyond_the_tolerance_only_equal_accuracies_of_like_speed_are_tied() -> None:
    (ranking,), _ = ranked(*trials((1000, 0.98), (1000, 0.9), (1010, 0.9), (2000, 0.9), (1000, 0.91)))
    assert places(ranking) == [(1, 1e-4), (2, 5e-4), (3, 4e-4), (4, 3e-4), (4, 2e-4)]


def test_by_images_per_second_accuracy_has_no_say() -> None:
    (ranking,), _ = ranked(*trials((1000, 0.98), (2000, 0.5), (1020, 0.1)), rank_by=RankBy.IMAGES_PER_SECOND)
    assert places(ranking) == [(1, 2e-4), (2, 3e-4), (2, 1e-4)]


def test_by_accuracy_speed_decides_between_equals_alone() -> None:
    (ranking,), _ = ranked(*trials((1000, 0.97), (2000, 0.97), (10, 0.98)), rank_by=RankBy.ACCURACY)
    assert places(ranking) == [(1, 3e-4), (2, 2e-4), (3, 1e-4)]


def test_by_accuracy_a_trial_without_a_rate_is_ranked_and_otherwise_not() -> None:
    outcomes = [*trials((1000, 0.97)), completed(spec(config(lr=2e-4)), rate=None, accuracy=0.98)]
    (ranking,), not_ranked = ranked(*outcomes, rank_by=RankBy.ACCURACY)
    assert (places(ranking), not_ranked) == ([(1, 2e-4), (2, 1e-4)], ())
    (ranking,), (left_out,) = ranked(*outcomes)
    assert (places(ranking), left_out.reason) == ([(1, 1e-4)], "no throughput was measured")


@pytest.mark.parametrize("rank_by", list(RankBy))
def test_an_unscored_data_set_is_ranked_by_rate_alone(rank_by: RankBy) -> None:
    (ranking,), not_ranked = ranked(*trials((1000, None), (2000, None), (1010, None)), rank_by=rank_by)
    assert places(ranking) == [(1, 2e-4), (2, 3e-4), (2, 1e-4)]
    assert (ranking.scored, ranking.best_accuracy, not_ranked) == (False, None, ())
    assert [standing.on_pareto_front for standing in ranking.standings] == [True, False, False]


def test_a_scored_trial_without_an_accuracy_is_not_ranked_beside_those_with_one() -> None:
    (ranking,), (left_out,) = ranked(*trials((1000, 0.97), (2000, None)))
    assert (places(ranking), left_out.reason) == ([(1, 1e-4)], "no accuracy was recorded")


def test_nan_and_infinity_never_win_whatever_the_order() -> None:
    """A NaN, B .80, C .90, D NaN, E .85 (B29), and F that was infinitely fast."""
    fast, instant = windows(9e5), dataclasses.replace(windows(1.0), window_seconds=(0.0,) * 30)
    unlearned = LearningCurve(accuracy=(0.1, 0.1), train_loss=(2.3, None))
    outcomes = {
        "A": ended("diverged", "loss became NaN at step 5", spec(config(lr=1e-4)), curve=unlearned, throughput=fast),
        "B": completed(spec(config(lr=2e-4)), accuracy=0.80),
        "C": completed(spec(config(lr=3e-4)), accuracy=0.90),
        "D": completed(spec(config(lr=4e-4)), accuracy=math.nan, throughput=fast),
        "E": completed(spec(config(lr=5e-4)), accuracy=0.85),
        "F": completed(spec(config(lr=6e-4)), accuracy=0.99, throughput=instant),
    }
    names = {1e-4: "A", 2e-4: "B", 3e-4: "C", 4e-4: "D", 5e-4: "E", 6e-4: "F"}
    for order in itertools.islice(itertools.permutations(outcomes.values()), 0, None, 7):
        (ranking,), not_ranked = ranked(*order)
        assert [names[lr] for _, lr in places(ranking)] == ["C", "E", "B"]
        assert sorted(names[entry.result.outcome.spec.config.lr] for entry in not_ranked) == ["A", "D", "F"]
        assert "loss became NaN at step 5" in {entry.reason for entry in not_ranked}


def test_a_trial_that_learned_nothing_is_last_however_fast_it_is() -> None:
    outcomes = [*trials((1000, 0.98), (900, 0.11)), completed(spec(config(lr=1.0)), rate=9e4, accuracy=0.1, loss=2.31)]
    for rank_by in RankBy:
        (ranking,), _ = ranked(*outcomes, rank_by=rank_by)
        assert places(ranking)[-1] == (3, 1.0)
        assert ranking.standings[-1].learned_nothing
    assert ranking.best_accuracy == 0.98


def test_where_nothing_was_learned_all_are_ranked_and_there_is_no_best_accuracy() -> None:
    (ranking,), _ = ranked(*(completed(spec(config(lr=lr)), accuracy=0.1, loss=2.31) for lr in LRS[:2]))
    assert ranking.best_accuracy is None
    assert len(ranking.standings) == 2


def test_a_precision_that_did_not_run_is_not_ranked() -> None:
    emulated = completed(spec(config("bf16")), rate=9e4, precision=PrecisionMeasurement(executed_precision="fp32"))
    (ranking,), (left_out,) = ranked(completed(), emulated)
    assert len(ranking.standings) == 1
    assert left_out.reason == "asked for bf16, but what ran was fp32"


@pytest.mark.parametrize(
    "other",
    [
        completed(spec(config("bf16")), device=DeviceFacts(device="NVIDIA A100", torch_version="2.14.1")),
        completed(spec(config("bf16")), device=DeviceFacts(device="cpu", torch_version="2.15.0")),
        completed(spec(config("bf16")), device=DeviceFacts(device="cpu", torch_version="2.14.1", cuda_version="13")),
        completed(spec(config("bf16")), placement=Placement(cpu_threads=8)),
        completed(spec(config("bf16")), measurement_version=2),
        completed(spec(config("bf16"), protocol=MeasurementProtocol(epochs=2))),
        completed(spec(config("bf16"), dataset="fashion_mnist")),
        completed(spec(config("bf16"), model_args={"width": 8})),
    ],
)
def test_what_cannot_be_compared_has_a_ranking_of_its_own(other: TrialOutcome) -> None:
    rankings, not_ranked = ranked(completed(), completed(spec(config(lr=2e-4))), other)
    assert [len(ranking.standings) for ranking in rankings] == [2, 1]
    assert not_ranked == ()


def test_the_seeds_of_a_configuration_are_taken_together() -> None:
    runs = [
        completed(spec(replicate=run), rate=rate, accuracy=0.97 + run / 100) for run, rate in enumerate((500, 2000))
    ]
    (ranking,), _ = ranked(*runs, completed(spec(seed=7), rate=1000.0, accuracy=0.99))
    (standing,) = ranking.standings
    assert len(standing.results) == 3
    assert standing.accuracy == pytest.approx(0.98)
    assert standing.rate is not None
    assert standing.rate.images_per_second == pytest.approx(1000.0)


def test_a_seed_that_did_not_complete_is_not_ranked_and_stays_with_its_configuration() -> None:
    """A worker that died reports neither its torch nor its threads."""
    died = ended("lost", "its worker died", spec(replicate=1), device=DeviceFacts(device="cpu"))
    nowhere = ended("lost", "its node died", spec(replicate=2), device=DeviceFacts())
    elsewhere = ended("lost", "no", spec(replicate=3), device=DeviceFacts(device="NVIDIA A100"))
    (ranking,), not_ranked = ranked(completed(), died, nowhere, elsewhere)
    assert {result.outcome.status_reason for result in ranking.standings[0].unfinished} == {
        "its worker died",
        "its node died",
    }
    assert len(not_ranked) == 3


def test_with_several_seeds_the_margin_is_at_least_one_standard_error_of_the_best() -> None:
    """Seeds scatter by .02 x sqrt(2) / sqrt(2); of two, the mean has .02 / sqrt(2) = .0141."""
    best = [
        completed(spec(config(lr=1e-4), replicate=run), accuracy=0.96 + 0.02 * math.sqrt(2) * run) for run in (0, 1)
    ]
    mean = 0.96 + 0.01 * math.sqrt(2)
    near = completed(spec(config(lr=2e-4)), rate=2000.0, accuracy=mean - 0.0140)
    far = completed(spec(config(lr=3e-4)), rate=3000.0, accuracy=mean - 0.0143)
    (ranking,), _ = ranked(*best, near, far)
    assert ranking.accuracy_margin == pytest.approx(0.02 / math.sqrt(2))
    assert [lr for _, lr in places(ranking)] == [2e-4, 1e-4, 3e-4]


def test_one_seed_leaves_the_margin_at_the_tolerance() -> None:
    (ranking,), _ = ranked(*trials((1000, 0.98), (2000, 0.97)), tolerance=0.003)
    assert ranking.accuracy_margin == 0.003


def test_the_pareto_front_holds_what_nothing_beats_in_both() -> None:
    (ranking,), _ = ranked(*trials((1000, 0.98), (2000, 0.95), (1500, 0.94), (900, 0.98)))
    front = {standing.config.lr: standing.on_pareto_front for standing in ranking.standings}
    assert front == {1e-4: True, 2e-4: True, 3e-4: False, 4e-4: False}


def test_nothing_at_all_is_no_ranking() -> None:
    assert ranked() == ((), ())


any_outcome = st.builds(
    lambda knobs, status, rate, accuracy, loss, seed, device: (
        completed(spec(knobs, seed=seed), rate=rate, accuracy=accuracy, loss=loss, device=DeviceFacts(device=device))
        if status is TrialStatus.COMPLETED
        else ended(status, asked=spec(knobs, seed=seed))
    ),
    st.builds(config, st.sampled_from(["fp32", "bf16"]), st.sampled_from([32, 64]), lr=st.sampled_from(LRS[:3])),
    st.sampled_from([TrialStatus.COMPLETED] * 4 + list(TrialStatus)),
    st.one_of(st.none(), st.floats(900, 1100), st.floats(1, 1e6)),
    st.one_of(st.none(), st.sampled_from([0.1, 0.97, 0.98]), st.floats(0, 1)),
    st.sampled_from([0.1, 2.31]),
    st.integers(0, 1),
    st.sampled_from(["cpu", "NVIDIA H200"]),
)


def content(rankings: tuple[Ranking, ...], not_ranked: tuple[NotRanked, ...]) -> object:
    return (
        [
            (
                ranking.key,
                ranking.accuracy_margin,
                [
                    (standing.rank, standing.config, standing.accuracy, standing.rate, standing.on_pareto_front)
                    for standing in ranking.standings
                ],
            )
            for ranking in rankings
        ],
        sorted((entry.result.trial_id, entry.result.key.device or "", entry.reason) for entry in not_ranked),
    )


@settings(deadline=None, max_examples=50)
@given(st.lists(any_outcome, max_size=12), st.sampled_from(list(RankBy)), st.randoms(use_true_random=False))
def test_the_order_never_depends_on_that_of_the_outcomes(
    outcomes: list[TrialOutcome], rank_by: RankBy, shuffle: random.Random
) -> None:
    before = content(*ranked(*outcomes, rank_by=rank_by))
    shuffle.shuffle(outcomes)
    assert content(*ranked(*outcomes, rank_by=rank_by)) == before


@settings(deadline=None, max_examples=50)
@given(st.lists(any_outcome, max_size=12), st.sampled_from(list(RankBy)))
def test_every_trial_is_ranked_or_listed_with_a_reason_and_never_both(
    outcomes: list[TrialOutcome], rank_by: RankBy
) -> None:
    results = results_of(outcomes)
    rankings, not_ranked = rank(Matching(results), rank_by)
    placed = [result for ranking in rankings for standing in ranking.standings for result in standing.results]
    listed = [entry.result for entry in not_ranked]
    assert sorted(map(id, placed + listed)) == sorted(map(id, results))
    assert all(result.outcome.status is TrialStatus.COMPLETED for result in placed)
    assert all(entry.reason for entry in not_ranked)


@settings(deadline=None, max_examples=50)
@given(st.lists(any_outcome, max_size=12), st.sampled_from(list(RankBy)))
def test_ranks_start_at_one_and_count_the_places_before(outcomes: list[TrialOutcome], rank_by: RankBy) -> None:
    for ranking in ranked(*outcomes, rank_by=rank_by)[0]:
        ranks = [standing.rank for standing in ranking.standings]
        assert ranks == [ranks.index(place) + 1 for place in ranks]
