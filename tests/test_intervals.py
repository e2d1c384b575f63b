"""Reports, evaluations and the schedule's moves, by the step."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainables.intervals import IntervalPlan, interval_count
from trainables.specs import MeasurementProtocol


def reports_of(plan: IntervalPlan) -> list[int]:
    """The steps at which a training reports, walked through as the loop does."""
    step = interval = 0
    reports = []
    while interval < plan.intervals:
        step = plan.next_report(step, interval)
        reports.append(step)
        interval += step == plan.interval_end(interval)
    return reports


def test_an_epoch_is_an_interval() -> None:
    plan = IntervalPlan.of(MeasurementProtocol(epochs=3), steps_per_epoch=7)
    assert reports_of(plan) == [7, 14, 21]
    assert [plan.interval_end(interval) for interval in range(3)] == [7, 14, 21]


def test_a_report_within_an_epoch_ends_no_interval() -> None:
    plan = IntervalPlan.of(MeasurementProtocol(epochs=2, report_every_steps=3), steps_per_epoch=7)
    assert reports_of(plan) == [3, 6, 7, 10, 13, 14]
    assert plan.intervals == 2


def test_a_schedule_may_be_longer_than_the_training() -> None:
    assert IntervalPlan.of(MeasurementProtocol(epochs=4), steps_per_epoch=7).schedule_intervals == 4
    assert (
        IntervalPlan.of(MeasurementProtocol(epochs=4, schedule_epochs=20), steps_per_epoch=7).schedule_intervals == 20
    )
    assert IntervalPlan.of(MeasurementProtocol(max_steps=40), steps_per_epoch=7).schedule_intervals == 20


def test_max_steps_alone_is_evaluated_twenty_times() -> None:
    plan = IntervalPlan.of(MeasurementProtocol(max_steps=400), steps_per_epoch=7)
    assert reports_of(plan) == list(range(20, 401, 20))


def test_the_last_interval_of_max_steps_may_be_shorter() -> None:
    plan = IntervalPlan.of(MeasurementProtocol(max_steps=10, report_every_steps=4), steps_per_epoch=3)
    assert reports_of(plan) == [4, 8, 10]


@pytest.mark.parametrize(
    ("step", "interval", "done"), [(0, 0, 0.0), (3, 0, 0.75), (8, 2, 2.0), (9, 2, 2.5), (10, 3, 3.0)]
)
def test_the_part_done_of_an_interval_is_a_fraction_of_its_own_length(step: int, interval: int, done: float) -> None:
    plan = IntervalPlan.of(MeasurementProtocol(max_steps=10, report_every_steps=4), steps_per_epoch=3)
    assert plan.intervals_done(step, interval) == done


@given(
    max_steps=st.integers(1, 10_000),
    report_every_steps=st.none() | st.integers(1, 500),
    steps_per_epoch=st.integers(1, 500),
)
def test_reports_grow_and_the_last_one_is_the_last_step(
    max_steps: int, report_every_steps: int | None, steps_per_epoch: int
) -> None:
    protocol = MeasurementProtocol(max_steps=max_steps, report_every_steps=report_every_steps)
    plan = IntervalPlan.of(protocol, steps_per_epoch=steps_per_epoch)
    reports = reports_of(plan)
    assert reports == sorted(set(reports))
    assert reports[-1] == max_steps
    assert len(reports) == plan.intervals == interval_count(protocol)


@given(epochs=st.integers(1, 50), every=st.none() | st.integers(1, 99), steps_per_epoch=st.integers(1, 99))
def test_every_epoch_ends_with_a_report(epochs: int, every: int | None, steps_per_epoch: int) -> None:
    protocol = MeasurementProtocol(epochs=epochs, report_every_steps=every)
    reports = reports_of(IntervalPlan.of(protocol, steps_per_epoch=steps_per_epoch))
    assert {epoch * steps_per_epoch for epoch in range(1, epochs + 1)} <= set(reports)
    assert len(reports) == epochs * math.ceil(steps_per_epoch / (every or steps_per_epoch))
