"""The report value, and the answer in sentences."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.answer import RunReport, build_report
from orchestrator.answer_words import answer_sentences, key_words, method_sentences, nothing_ranked
from orchestrator.ranking import RankBy
from tests.built_outcomes import completed, config, ended, spec
from trainables.outcomes import DeviceFacts, TrialOutcome
from trainables.specs import MeasurementProtocol

FAST = config("bf16", 256, "default", num_workers=2)
PLAIN = config("fp32", 256, "off", num_workers=2)


def answer(*outcomes: TrialOutcome, rank_by: RankBy = RankBy.FASTEST_ACCURATE) -> list[str]:
    (one,) = build_report(outcomes, rank_by=rank_by).answers
    return answer_sentences(one)


def test_the_answer_names_the_winner_its_speed_up_and_its_accuracy() -> None:
    assert answer(
        completed(spec(FAST), rate=2100.0, accuracy=0.983), completed(spec(PLAIN), rate=1000.0, accuracy=0.984)
    ) == [
        "bf16, batch 256, compiled, lr 0.001, 2 workers: 2.10× the fp32 baseline [1.97–2.24]; 2,100 images/s; "
        "accuracy 98.3 % (−0.1 pt, within the ±2.1 pt that chance gives)."
    ]


def test_a_loss_of_accuracy_beyond_chance_is_said() -> None:
    (sentence,) = answer(
        completed(spec(FAST), rate=2100.0, accuracy=0.93),
        completed(spec(PLAIN), rate=1000.0, accuracy=0.99),
        rank_by=RankBy.IMAGES_PER_SECOND,
    )
    assert sentence.endswith("accuracy 93.0 % (−6.0 pt, more than the ±3.0 pt that chance gives).")


def test_without_a_twin_no_unmatched_speed_up_is_given() -> None:
    first, second = answer(completed(spec(FAST), rate=2100.0), completed(spec(config(batch_size=64)), rate=1000.0))
    assert first == "bf16, batch 256, compiled, lr 0.001, 2 workers: 2,100 images/s; accuracy 97.0 % (±1.0 pt)."
    assert second.startswith("No twin of it in fp32, not compiled was run, so no speed-up is given;")


def test_a_twin_that_did_not_complete_is_named_with_its_end() -> None:
    _, second = answer(completed(spec(FAST)), ended("out_of_memory", "out of memory", spec(PLAIN)))
    assert second == (
        "Its twin in fp32, not compiled cannot be compared to (it ended as out_of_memory), so no speed-up is given."
    )


def test_where_the_baseline_wins_its_nearest_rival_is_named() -> None:
    first, second = answer(
        completed(rate=2000.0, accuracy=0.98), completed(spec(config("bf16")), rate=1000.0, accuracy=0.979)
    )
    assert first == (
        "fp32, batch 64, not compiled, lr 0.001, no workers: the fp32 baseline itself; 2,000 images/s; "
        "accuracy 98.0 % (±0.8 pt)."
    )
    assert second == (
        "Its nearest rival is bf16, batch 64, not compiled, lr 0.001, no workers: 0.50× its speed [0.47–0.53], "
        "accuracy 97.9 %."
    )


def test_ties_are_named() -> None:
    first, second = answer(
        completed(rate=1000.0),
        completed(spec(config("bf16")), rate=1020.0),
        completed(spec(config("fp16")), rate=1010.0),
    )
    assert "1.02× the fp32 baseline [0.96–1.09], no clear difference" in first
    assert second == (
        "3 configurations are tied for the first place, since their speeds cannot be told apart: this one; "
        "fp16, batch 64, not compiled, lr 0.001, no workers; fp32, batch 64, not compiled, lr 0.001, no workers."
    )


def test_of_many_ties_the_number_is_given() -> None:
    _, second = answer(*(completed(spec(config(lr=lr / 1e4))) for lr in range(1, 9)))
    assert second.startswith("8 configurations are tied for the first place")
    assert second.endswith("the table has them all with rank 1.")


def test_where_nothing_was_learned_nothing_is_recommended() -> None:
    (sentence,) = answer(completed(accuracy=0.1, loss=2.31))
    assert sentence.startswith("No configuration learned anything")


def test_an_unscored_data_set_says_so() -> None:
    (sentence,) = answer(completed(accuracy=None))
    assert sentence.endswith("1,000 images/s; accuracy is not scored on this data set.")


def test_several_runs_of_the_winner_are_counted() -> None:
    (sentence,) = answer(completed(), completed(spec(replicate=1)))
    assert sentence.endswith("; over 2 runs.")


def test_further_knobs_are_part_of_the_name() -> None:
    (sentence,) = answer(completed(spec(config(channels_last=True, num_workers=1))))
    assert sentence.startswith("fp32, batch 64, not compiled, lr 0.001, 1 worker, channels_last True: ")


def test_a_report_of_failures_alone_says_what_they_were() -> None:
    report = build_report([ended("failed", "bad label"), ended("out_of_memory", asked=spec(config("bf16")))])
    assert report.answers == ()
    assert report.winner is None
    assert nothing_ranked(report) == (
        "No configuration can be ranked: of 2 trials none qualifies (1 out_of_memory, 1 failed)."
    )
    assert nothing_ranked(build_report([])) == "No trial has finished, so there is nothing to rank."


def test_what_all_trials_of_a_ranking_share_is_named() -> None:
    outcome = completed(
        spec(protocol=MeasurementProtocol(max_steps=500)),
        device=DeviceFacts(device="NVIDIA H200", torch_version="2.14.1", cuda_version="13.0"),
    )
    (ranking,) = build_report([outcome]).rankings
    assert key_words(ranking.key) == "NVIDIA H200, torch 2.14.1, CUDA 13.0, 2 threads, digits_cnn on digits, 500 steps"


@pytest.mark.parametrize("rank_by", list(RankBy))
def test_the_method_names_the_rule_that_decided(rank_by: RankBy) -> None:
    report = build_report([completed(), completed(spec(replicate=1))], rank_by=rank_by)
    measured, ruled = method_sentences(report, report.rankings[0])
    assert (
        "by which processes differ (the default of 2 % and 1 repeat, trials that differ in lr or seed alone)"
        in measured
    )
    assert ("within 0.5 pt of the best" in ruled) == (rank_by is RankBy.FASTEST_ACCURATE)


def outline(report: RunReport) -> list[object]:
    return [
        [result.trial_id for result in report.results],
        [answer_sentences(one) for one in report.answers],
        [(pair.knob, pair.before.trial_id, pair.verdict) for pair in report.pairs],
        [(finding.kind, dict(finding.evidence)) for finding in report.findings],
        report.status_counts,
    ]


@settings(max_examples=20, deadline=None)
@given(st.randoms(use_true_random=False))
def test_the_whole_report_does_not_depend_on_the_order_of_the_outcomes(shuffle: random.Random) -> None:
    outcomes = [
        completed(spec(config(precision, batch_size), replicate=run), rate=900.0 + batch_size + run, notes=("a note",))
        for precision in ("fp32", "bf16")
        for batch_size in (32, 64)
        for run in (0, 1)
    ]
    outcomes += [ended("failed", f"reason {number}", spec(config(lr=number))) for number in (1, 2)]
    before = outline(build_report(outcomes))
    shuffle.shuffle(outcomes)
    assert outline(build_report(outcomes)) == before


def test_a_winner_that_chance_may_have_made_names_the_faster_one_it_beat() -> None:
    *_, last = answer(
        completed(spec(config("bf16")), rate=200.0, accuracy=0.989), completed(rate=1000.0, accuracy=0.983)
    )
    assert last == (
        "But fp32, batch 64, not compiled, lr 0.001, no workers is 5.00× as fast [4.68–5.34], and only 0.6 pt less "
        "accurate, within the ±2.0 pt that chance gives: more seeds (--repeats) or more validation images would decide "
        "between them."
    )


@pytest.mark.parametrize(
    ("rate", "accuracy", "why"),
    [(1000.0, 0.93, "chance does not explain it"), (202.0, 0.983, "it is not clearly faster")],
)
def test_no_other_is_named_where(rate: float, accuracy: float, why: str) -> None:
    sentences = answer(
        completed(spec(config("bf16")), rate=200.0, accuracy=0.989), completed(rate=rate, accuracy=accuracy)
    )
    assert not any(sentence.startswith("But ") for sentence in sentences), why
