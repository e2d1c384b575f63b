"""Which outcomes count, and what is derived from each."""

import dataclasses
import itertools
import math

import pytest

from orchestrator.results import results_of
from tests.built_outcomes import completed, config, ended, spec
from trainables.measurements import LearningCurve, PrecisionMeasurement, ThroughputMeasurement
from trainables.outcomes import DeviceFacts, TrialOutcome, TrialStatus


def only(*outcomes: TrialOutcome) -> TrialOutcome:
    """The one that counts, which must not depend on the order."""
    found = [results_of(order) for order in itertools.permutations(outcomes)]
    assert {len(results) for results in found} == {1}
    assert {id(results[0].outcome) for results in found} == {id(found[0][0].outcome)}
    return found[0][0].outcome


def test_the_latest_attempt_of_a_trial_counts() -> None:
    lost, again = ended("lost", attempts=1), completed(attempts=2)
    assert only(lost, again) is again


def test_of_one_attempt_the_furthest_segment_counts() -> None:
    rung, whole = completed(status=TrialStatus.STOPPED_EARLY, segment_end=2), completed(segment_end=20)
    assert only(rung, whole) is whole


def test_two_records_alike_but_for_a_number_are_chosen_between_whatever_their_order() -> None:
    only(completed(rate=1000.0), completed(rate=1001.0), completed(rate=999.0))


def test_replicates_and_device_models_are_results_of_their_own() -> None:
    outcomes = [
        completed(),
        completed(spec(replicate=1)),
        completed(device=DeviceFacts(device="NVIDIA H200")),
    ]
    assert len(results_of(outcomes)) == 3


def test_an_attempt_that_reached_no_device_counts_with_the_one_that_did() -> None:
    nowhere = ended("lost", device=DeviceFacts())
    assert only(nowhere, completed(attempts=2)).status is TrialStatus.COMPLETED
    assert only(completed(), ended("lost", device=DeviceFacts(), attempts=2)).status is TrialStatus.LOST


def test_an_attempt_that_reached_no_device_stands_alone_beside_two_devices() -> None:
    outcomes = [ended("lost", device=DeviceFacts()), completed(), completed(device=DeviceFacts(device="NVIDIA H200"))]
    assert len(results_of(outcomes)) == 3


@pytest.mark.parametrize("status", [status for status in TrialStatus if status is not TrialStatus.COMPLETED])
def test_whatever_did_not_complete_is_not_ranked_and_has_a_reason(status: TrialStatus) -> None:
    assert results_of([ended(status, "node-3 is gone")])[0].unranked_reason == "node-3 is gone"
    assert results_of([ended(status)])[0].unranked_reason


def test_a_precision_that_did_not_run_is_not_ranked() -> None:
    outcome = completed(spec(config("bf16")), precision=PrecisionMeasurement(executed_precision="fp32"))
    assert results_of([outcome])[0].unranked_reason == "asked for bf16, but what ran was fp32"


@pytest.mark.parametrize("field", ["accuracy", "train_loss", "validation_loss"])
def test_a_nan_that_slipped_through_is_not_ranked(field: str) -> None:
    curve = dataclasses.replace(completed().curve or LearningCurve(), **{field: (0.5, math.nan)})
    reason = results_of([completed(curve=curve)])[0].unranked_reason
    assert reason is not None
    assert "not a finite number" in reason


def test_a_rate_that_no_clock_can_give_is_not_ranked_and_has_no_rate() -> None:
    endless = ThroughputMeasurement(window_images=(64, 64), window_seconds=(1.0, 0.0), measured_on="training")
    result = results_of([completed(throughput=endless)])[0]
    assert result.rate is None
    assert "no possible rate" in (result.unranked_reason or "")


@pytest.mark.parametrize(
    ("accuracy", "loss", "nothing"),
    [
        (0.10, math.log(10), True),
        (0.12, 2.31, True),
        (0.10, 50.0, True),
        (0.30, math.log(10), False),
        (0.10, 1.0, False),
    ],
)
def test_a_trial_learned_nothing_where_accuracy_is_chance_and_loss_that_of_guessing(
    accuracy: float, loss: float, nothing: bool
) -> None:
    assert results_of([completed(accuracy=accuracy, loss=loss)])[0].learned_nothing is nothing


def test_how_far_guessing_scores_above_chance_depends_on_the_validation_images() -> None:
    assert results_of([completed(accuracy=0.125, loss=2.4, images=360)])[0].learned_nothing
    assert not results_of([completed(accuracy=0.125, loss=2.4, images=10_000)])[0].learned_nothing
    assert not results_of([completed(accuracy=0.125, loss=2.4, images=None)])[0].learned_nothing


def test_an_unscored_trial_is_not_said_to_have_learned_nothing() -> None:
    assert not results_of([completed(accuracy=None, loss=math.log(10))])[0].learned_nothing


def test_grown_validation_images_count_as_their_sources() -> None:
    assert results_of([completed(images=10_000, independent_validation_images=360)])[0].independent_images == 360
    assert results_of([completed(images=10_000)])[0].independent_images == 10_000


def test_the_comparison_key_holds_what_must_be_shared_and_nothing_of_the_knobs() -> None:
    first, second = results_of([completed(), completed(spec(config("bf16", 256, "default", 3e-3, 2), seed=5))])
    assert first.key == second.key
    others = [
        completed(spec(model="other")),
        completed(spec(dataset_args={"train_limit": 10})),
        completed(spec(code_fingerprint="abc")),
        completed(device=DeviceFacts(device="cpu", torch_version="2.15")),
        completed(measurement_version=2),
    ]
    assert first.key not in {result.key for result in results_of(others)}
