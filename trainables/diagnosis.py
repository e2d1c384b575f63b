"""A training's loop in parts, after its end: its steps on a batch that stays on the device, and its loader alone."""

import math
from collections.abc import Callable
from functools import partial
from itertools import count
from statistics import median

from trainables.bad_ends import bad_end
from trainables.measurements import DiagnosisMeasurement, ThroughputMeasurement
from trainables.process_state import restored_generators
from trainables.specs import TrialSpec
from trainables.throughput import restored_weights, seconds_per_image, windows_of
from trainables.timing import DeviceClock, WindowTimer
from trainables.trial_setup import TrialParts

LARGEST_SHARE = 0.05
"""Of the trial's time so far: the longest diagnosis of a long trial."""
SHORT_TRIAL_SECONDS = 1.0
"""Longest diagnosis of a trial of less than 20 seconds."""
LONGEST_SECONDS = 60.0
WINDOWS = 20
"""Of each part: enough, whatever time is left."""

_CLEAR_SHARE = 0.1
"""A step that is longer by more than this share of it than its compute waits for the loader."""
_MARGIN = 1.1
"""What is expected to fit should not turn out to need a little longer."""
_BURST_STEPS, _BURSTS = 2, 3
"""So few steps fit into a device's queue: a full one would hold the host up."""


def diagnosis_budget(trial_seconds: float) -> float:
    """Seconds that the whole diagnosis may take, at the end of a trial that took `trial_seconds` until then."""
    return min(max(SHORT_TRIAL_SECONDS, LARGEST_SHARE * trial_seconds), LONGEST_SECONDS)


def diagnose(
    parts: TrialParts,
    spec: TrialSpec,
    clock: DeviceClock,
    *,
    throughput: ThroughputMeasurement | None,
    budget_seconds: float,
) -> tuple[DiagnosisMeasurement, tuple[str, ...]]:
    """What was measured, and what was not and why. To be called when all that is kept of the training is kept.

    Weights and generators are put back; the optimizer's state and the loader's place in its epoch are not.
    """
    diagnosis = _Diagnosis(parts, spec, clock, throughput=throughput, budget_seconds=budget_seconds)
    diagnosis.attempt("the diagnosis", diagnosis.run)
    return diagnosis.measurement(), tuple(diagnosis.notes)


class _Diagnosis:
    """A diagnosis under way. Whatever raises in a part of it becomes a note."""

    def __init__(
        self,
        parts: TrialParts,
        spec: TrialSpec,
        clock: DeviceClock,
        *,
        throughput: ThroughputMeasurement | None,
        budget_seconds: float,
    ) -> None:
        self._parts = parts
        self._spec = spec
        self._clock = clock
        self._budget_seconds = budget_seconds
        self._started = clock.read()
        per_image = seconds_per_image(throughput)
        self._step_seconds = None if per_image is None else per_image * parts.batches.batch_size
        """Of the whole loop; None where it is not known."""
        self._compute_seconds: float | None = None
        """Of a step on the resident batch."""
        self._compute: ThroughputMeasurement | None = None
        self._loader: ThroughputMeasurement | None = None
        self._host_fraction: float | None = None
        self.notes: list[str] = []

    def measurement(self) -> DiagnosisMeasurement:
        return DiagnosisMeasurement(
            compute=self._compute,
            loader=self._loader,
            host_fraction=self._host_fraction,
            diagnosis_seconds=self._clock.read() - self._started,
        )

    def attempt(self, what: str, measure: Callable[[], None]) -> None:
        try:
            measure()
        except (Exception, SystemExit) as error:  # noqa: BLE001 - the training itself ended well
            self.notes.append(f"{what} ended early: {bad_end(error, self._spec).reason}")

    def run(self) -> None:
        with restored_generators(self._parts.to_device.device), restored_weights(self._parts.training.model):
            self.attempt("measuring compute alone", self._measure_compute)
            self.attempt("measuring the loader alone", self._measure_loader)

    def _measure_compute(self) -> None:
        batch = self._parts.training.last_batch
        if batch is None:
            self.notes.append("compute alone was not measured: the training ended in an earlier process")
            return
        if self._step_seconds is not None and self._step_seconds > self._budget_seconds:
            self._note_too_slow("compute", "steps")
            return
        take_step = partial(self._parts.training.take_uncounted_step, *batch)
        self._compute_seconds = _seconds_of(take_step, self._clock)
        over = self._started + self._compute_budget()
        if self._clock.glance() + self._spec.protocol.window_steps * self._compute_seconds > over:
            self._note_too_slow("compute", "steps")
            return
        timer = WindowTimer(self._spec.protocol, self._clock, step_seconds=self._compute_seconds)
        timer.resume()
        while len(timer.window_images) < WINDOWS and self._clock.glance() + self._compute_seconds <= over:
            take_step()
            timer.count(self._parts.batches.batch_size)
        timer.pause()
        self._compute = windows_of(timer, measured_on="resident_batch")
        if self._compute is None:
            self._note_too_slow("compute", "steps")
        if self._parts.to_device.device.type != "cpu":
            self._host_fraction = host_fraction(take_step, self._clock)

    def _measure_loader(self) -> None:
        batches, over = self._parts.batches, self._started + self._budget_seconds
        if self._clock.glance() + self._loader_seconds() > over:
            self._note_too_slow("the loader", "batches")
            return
        timer = WindowTimer(self._spec.protocol, self._clock, step_multiple=batches.bunch)
        timer.resume(uncounted_steps=self._spec.config.num_workers)  # until each worker has delivered its first
        for epoch in count(self._parts.training.epoch + 1):
            for batch in batches.epoch(epoch):
                del batch  # as in the training, so that the next one may take the same memory
                timer.count(batches.batch_size)
                if len(timer.window_images) >= WINDOWS or self._clock.glance() > over:
                    timer.pause()
                    self._loader = windows_of(timer, measured_on="loader")
                    if self._loader is None:
                        self._note_too_slow("the loader", "batches")
                    return

    def _note_too_slow(self, part: str, units: str) -> None:
        self.notes.append(
            f"{part} alone was not measured: too few {units} fit into the time of the diagnosis, "
            f"{LARGEST_SHARE:.0%} of the trial's time and at least {SHORT_TRIAL_SECONDS:g} s"
        )

    def _compute_budget(self) -> float:
        """Half of the time, less where the loader needs more than the other half, more where a step does."""
        whole, left = self._budget_seconds, self._budget_seconds - _MARGIN * self._loader_seconds()
        one_window = self._clock.glance() - self._started
        one_window += _MARGIN * self._spec.protocol.window_steps * (self._compute_seconds or 0.0)
        return max(min(whole / 2, max(left, whole / 6)), min(left, one_window))

    def _loader_seconds(self) -> float:
        """What the loader is expected to need for one window."""
        bunch = self._parts.batches.bunch
        steps = math.ceil(self._spec.protocol.window_steps / bunch) * bunch
        batches = self._spec.config.num_workers + steps
        return max(batches * self._batch_seconds(), self._spec.protocol.window_seconds)

    def _batch_seconds(self) -> float:
        """What a batch is expected to take: what a step of the whole loop takes beyond its compute, or all of a step
        that waits while other batches are being made; 0 where that is not known.
        """
        step, compute = self._step_seconds or 0.0, self._compute_seconds or 0.0
        waited = max(0.0, step - compute)
        in_turn = self._spec.config.num_workers == 0 and self._parts.to_device.device.type == "cpu"
        return waited if in_turn or waited < _CLEAR_SHARE * step else step


def host_fraction(take_step: Callable[[], None], clock: DeviceClock) -> float | None:
    """Of the time of a few steps, what passes until the host has given them to the device."""
    fractions = []
    for _ in range(_BURSTS):
        started = clock.read()
        for _ in range(_BURST_STEPS):
            take_step()
        issued = clock.glance()
        done = clock.read()
        if done > started:
            fractions.append((issued - started) / (done - started))
    return median(fractions) if fractions else None


def _seconds_of(work: Callable[[], None], clock: DeviceClock) -> float:
    started = clock.read()
    work()
    return clock.read() - started
