"""A trial's record: what may be in it, and its one way to JSON and back."""

import json
import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.test_specs import SPEC, specs
from trainables.measurements import CompileMeasurement, LearningCurve, PrecisionMeasurement, ThroughputMeasurement
from trainables.outcomes import (
    DeviceFacts,
    Durations,
    Placement,
    TrialOutcome,
    TrialStatus,
    finite_or_none,
    outcome_from_json,
    outcome_from_mapping,
    outcome_to_json,
    outcome_to_mapping,
)

OUTCOME = TrialOutcome(
    spec=SPEC,
    status=TrialStatus.COMPLETED,
    segment_end=2,
    epochs_completed=2,
    curve=LearningCurve(accuracy=(0.5, 0.75), validation_loss=(1.0, 0.5), train_loss=(1.25, 0.625)),
    throughput=ThroughputMeasurement(window_images=(64, 64), window_seconds=(0.5, 0.25), measured_on="training"),
    device=DeviceFacts(device="cpu", torch_version="2.14.1"),
    finished_at="2026-01-02T03:04:05+00:00",
)

numbers = st.floats(allow_nan=False, allow_infinity=False)
words = st.text(max_size=8)
curves = st.lists(st.none() | numbers, max_size=3).map(tuple)
windows = st.lists(st.tuples(st.integers(1, 10**6), numbers), min_size=1, max_size=3)
throughputs = st.builds(
    lambda pairs: ThroughputMeasurement(
        window_images=tuple(images for images, _ in pairs),
        window_seconds=tuple(seconds for _, seconds in pairs),
        measured_on="copy",
    ),
    windows,
)
outcomes = st.builds(
    TrialOutcome,
    spec=specs,
    status=st.sampled_from(TrialStatus),
    status_reason=st.none() | words,
    curve=st.none() | st.builds(LearningCurve, accuracy=curves, validation_loss=curves, train_loss=curves),
    throughput=st.none() | throughputs,
    compilation=st.none() | st.builds(CompileMeasurement, compile_seconds=st.none() | numbers, cache=st.none() | words),
    precision=st.none() | st.builds(PrecisionMeasurement, executed_precision=words, final_loss_scale=numbers),
    peak_memory_bytes=st.none() | st.integers(0, 2**40),
    device=st.builds(DeviceFacts, device=words, compute_capability=st.none() | words),
    placement=st.builds(Placement, node=st.none() | words, neighbours=st.none() | st.integers(0, 9)),
    durations=st.builds(Durations, setup_seconds=numbers, trial_seconds=numbers),
    notes=st.lists(words, max_size=2).map(tuple),
)


@given(outcome=outcomes)
def test_a_record_survives_json(outcome: TrialOutcome) -> None:
    data = outcome_to_json(outcome)
    assert outcome_from_json(data) == outcome
    assert outcome_to_json(outcome_from_json(data)) == data
    assert outcome_from_mapping(outcome_to_mapping(outcome)) == outcome


def refuse_constant(name: str) -> None:
    raise AssertionError(f"{name} is no strict JSON")


@given(outcome=outcomes)
def test_a_record_is_strict_json(outcome: TrialOutcome) -> None:
    assert json.loads(outcome_to_json(outcome), parse_constant=refuse_constant)["status"] == outcome.status.value


def test_no_part_of_a_record_is_taken_for_one() -> None:
    """A file cut off anywhere is found, never half read."""
    data = outcome_to_json(OUTCOME).rstrip()
    for length in range(len(data)):
        with pytest.raises(ValueError, match="TrialOutcome"):
            outcome_from_json(data[:length])


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_none_is_not_written(number: float) -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        outcome_to_json(replace(OUTCOME, curve=LearningCurve(accuracy=(number,))))


@pytest.mark.parametrize("constant", [b"NaN", b"Infinity"])
def test_a_number_that_is_none_is_not_read(constant: bytes) -> None:
    data = outcome_to_json(OUTCOME)
    assert b"0.75" in data
    with pytest.raises(ValueError, match="finite"):
        outcome_from_json(data.replace(b"0.75", constant))


@pytest.mark.parametrize("part", ["", "curve", "device", "spec", "durations"])
def test_an_unknown_field_is_refused_at_every_depth(part: str) -> None:
    mapping = outcome_to_mapping(OUTCOME)
    (mapping[part] if part else mapping)["accurracy"] = 1.0
    with pytest.raises(ValueError, match="accurracy"):
        outcome_from_mapping(mapping)


def test_an_unknown_status_is_refused() -> None:
    with pytest.raises(ValueError, match="stopped_early"):
        outcome_from_mapping(outcome_to_mapping(OUTCOME) | {"status": "finished"})


def test_the_statuses_are_a_closed_set() -> None:
    assert [status.value for status in TrialStatus] == [
        "completed",
        "stopped_early",
        "unsupported",
        "out_of_memory",
        "diverged",
        "timed_out",
        "failed",
        "lost",
    ]


def test_the_accuracy_is_that_of_the_last_epoch() -> None:
    assert OUTCOME.accuracy == 0.75
    assert replace(OUTCOME, curve=LearningCurve(accuracy=(0.5, None))).accuracy is None
    assert replace(OUTCOME, curve=LearningCurve()).accuracy is None
    assert replace(OUTCOME, curve=None).accuracy is None


@pytest.mark.parametrize(("images", "seconds"), [((), ()), ((64,), ()), ((64,), (0.5, 0.5))])
def test_images_and_seconds_of_a_window_are_born_together(images: tuple[int, ...], seconds: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="one or more windows"):
        ThroughputMeasurement(window_images=images, window_seconds=seconds, measured_on="training")


def test_a_stored_measurement_without_windows_is_refused() -> None:
    mapping = outcome_to_mapping(OUTCOME)
    mapping["throughput"] |= {"window_images": [], "window_seconds": []}
    with pytest.raises(ValueError, match="one or more windows"):
        outcome_from_mapping(mapping)


@given(number=st.floats())
def test_finite_or_none_keeps_numbers_and_drops_the_rest(number: float) -> None:
    assert finite_or_none(number) == (number if math.isfinite(number) else None)
