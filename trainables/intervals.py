"""Where a training reports, evaluates and moves its schedule: a pure function of protocol and epoch length."""

import math
from dataclasses import dataclass

from trainables.specs import MeasurementProtocol

INTERVALS_OF_MAX_STEPS = 20
"""How often a training of `max_steps` is evaluated where `report_every_steps` is not given."""


def interval_count(protocol: MeasurementProtocol) -> int:
    """Intervals in all: epochs, or parts of `max_steps`. It needs no data set, so a sweep can plan with it."""
    if protocol.epochs is not None:
        return protocol.epochs
    return math.ceil(_max_steps(protocol) / _steps_per_interval(protocol))


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalPlan:
    """The optimizer steps at which a training reports and at which an interval ends, counted from its start.

    An interval is the unit of the schedule and of evaluation: an epoch, or `report_every_steps` steps of `max_steps`
    (without it a twentieth of them, rounded up; the last interval may be shorter).
    """

    intervals: int
    schedule_intervals: int
    """Intervals until the schedule has come down; never fewer than `intervals`."""
    steps_per_interval: int
    steps_per_report: int
    total_steps: int

    @classmethod
    def of(cls, protocol: MeasurementProtocol, *, steps_per_epoch: int) -> "IntervalPlan":
        if protocol.epochs is not None:
            return cls(
                intervals=protocol.epochs,
                schedule_intervals=protocol.schedule_epochs or protocol.epochs,
                steps_per_interval=steps_per_epoch,
                steps_per_report=protocol.report_every_steps or steps_per_epoch,
                total_steps=protocol.epochs * steps_per_epoch,
            )
        steps = _steps_per_interval(protocol)
        return cls(
            intervals=interval_count(protocol),
            schedule_intervals=interval_count(protocol),
            steps_per_interval=steps,
            steps_per_report=steps,
            total_steps=_max_steps(protocol),
        )

    def interval_end(self, interval: int) -> int:
        """Steps done when interval number `interval` (from 0) is over."""
        return min((interval + 1) * self.steps_per_interval, self.total_steps)

    def next_report(self, step: int, interval: int) -> int:
        """The step of the next report after `step` steps: at the latest the end of `interval`."""
        started = interval * self.steps_per_interval
        reports = (step - started) // self.steps_per_report + 1
        return min(started + reports * self.steps_per_report, self.interval_end(interval))

    def intervals_done(self, step: int, interval: int) -> float:
        """`interval` and the part done of the next one."""
        started = interval * self.steps_per_interval
        if step <= started:
            return float(interval)
        return interval + (step - started) / (self.interval_end(interval) - started)


def _max_steps(protocol: MeasurementProtocol) -> int:
    if protocol.max_steps is None:
        raise ValueError("a protocol needs epochs or max_steps")
    return protocol.max_steps


def _steps_per_interval(protocol: MeasurementProtocol) -> int:
    return protocol.report_every_steps or max(1, math.ceil(_max_steps(protocol) / INTERVALS_OF_MAX_STEPS))
