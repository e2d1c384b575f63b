"""The sweep's bookkeeping between the strategy and the engine: what is in flight, recorded, and shown. No Ray in it."""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from orchestrator.ledger import Ledger
from orchestrator.progress import RunningTrial, SweepProgress, View
from orchestrator.strategy import Pause, RetryPolicy, Segment, Strategy, SweepState, TrialKey, key_of
from trainables.outcomes import DeviceFacts, Durations, Placement, TrialOutcome, TrialStatus
from trainables.specs import TrialSpec

logger = logging.getLogger(__name__)


class Coordinator:
    """Hands out segments and takes in what became of them. An outcome is stored before anything else happens to it."""

    def __init__(
        self,
        *,
        ledger: Ledger,
        planned: Sequence[TrialSpec],
        strategy: Strategy,
        retries: RetryPolicy,
        known: Iterable[TrialOutcome],
        view: View,
        clock: Callable[[], float],
    ) -> None:
        self._ledger = ledger
        self._strategy = strategy
        self._retries = retries
        self._view = view
        self._clock = clock
        self._began = clock()
        self._answered: dict[TrialKey, TrialOutcome] = {}
        self._running: dict[TrialKey, RunningTrial] = {}
        self._in_flight: dict[TrialKey, Segment] = {}
        self._devices: dict[TrialKey, DeviceFacts] = {}
        self._gpu_seconds = 0.0
        self._planned = {key_of(spec): spec for spec in planned}
        self._statuses: Counter[str] = Counter()
        self._best: TrialOutcome | None = None
        for outcome in sorted(known, key=lambda outcome: (outcome.attempts, outcome.segment_end)):
            self._take(outcome)
        self._planned |= self._repeats_done()
        self._answered_before = self._final_count()

    @property
    def progress(self) -> SweepProgress:
        return SweepProgress(
            planned=len(self._planned),
            answered=self._final_count(),
            answered_before=self._answered_before,
            elapsed_seconds=self.elapsed_seconds,
            running=[*self._running.values()],
            statuses=self._statuses,
            best=self._best,
        )

    @property
    def elapsed_seconds(self) -> float:
        return self._clock() - self._began

    def not_run(self) -> list[TrialSpec]:
        """Planned trials without a final outcome."""
        return [spec for key, spec in self._planned.items() if not self._is_final(key)]

    def is_done(self) -> bool:
        """Whether there is nothing to start, now or ever."""
        return self._strategy.propose(self._state()) is Pause.DONE

    def next(self) -> Segment | Pause:
        """The next segment, from now on in flight."""
        proposal = self._strategy.propose(self._state())
        if isinstance(proposal, Segment):
            key = key_of(proposal.spec)
            self._in_flight[key] = proposal
            self._planned.setdefault(key, proposal.spec)  # a strategy may plan more than it began with
        return proposal

    def started(self, segment: Segment, *, node: str, accelerator_ids: tuple[str, ...], device: DeviceFacts) -> None:
        """Its worker is up."""
        key = key_of(segment.spec)
        trial = RunningTrial(
            spec=segment.spec,
            attempt=segment.attempt,
            started_seconds=self.elapsed_seconds,
            node=node,
            accelerator_ids=accelerator_ids,
        )
        self._running[key] = trial
        self._devices[key] = device
        here = [other for other in self._running.values() if other.node == node]
        for other in here:
            other.neighbours = max(other.neighbours or 0, len(here) - 1)
        self._show(lambda: self._view.started(trial, self.progress))

    def progressed(self, segment: Segment, progress: Mapping[str, Any]) -> None:
        trial = self._running.get(key_of(segment.spec))
        if trial is not None:
            trial.epoch, trial.epochs = progress["epoch"], progress["epochs"]
            trial.images_per_second, trial.accuracy = progress["images_per_second"], progress["accuracy"]

    def finished(self, segment: Segment, outcome: TrialOutcome) -> None:
        """The trial ended in an outcome of its own."""
        trial = self._running.get(key_of(segment.spec))
        if trial is not None:
            placement = replace(
                outcome.placement,
                node=trial.node,
                accelerator_ids=trial.accelerator_ids,
                neighbours=trial.neighbours,
            )
            outcome = replace(outcome, placement=placement)
        self._end(segment, outcome)

    def died(self, segment: Segment, status: TrialStatus, reason: str) -> None:
        """Its worker ended without an outcome. A death that follows a reported outcome is none."""
        key = key_of(segment.spec)
        if self._in_flight.get(key) is not segment:
            return
        trial = self._running.get(key)
        seconds = self.elapsed_seconds - trial.started_seconds if trial else 0.0
        placement = Placement()
        if trial is not None:
            placement = Placement(node=trial.node, accelerator_ids=trial.accelerator_ids, neighbours=trial.neighbours)
        self._end(
            segment,
            TrialOutcome(
                spec=segment.spec,
                status=status,
                status_reason=reason,
                attempts=segment.attempt,
                device=self._devices.get(key, DeviceFacts()),
                placement=placement,
                durations=Durations(trial_seconds=seconds),
                finished_at=datetime.now(UTC).isoformat(timespec="seconds"),
            ),
        )

    def tick(self) -> None:
        self._show(lambda: self._view.tick(self.progress))

    def overdue(self, timeout_seconds: float) -> list[Segment]:
        """Segments whose worker has been up for longer than that."""
        now = self.elapsed_seconds
        return [
            self._in_flight[key]
            for key, trial in self._running.items()
            if now - trial.started_seconds > timeout_seconds
        ]

    def _state(self) -> SweepState:
        return SweepState(
            answered=self._answered,
            in_flight=frozenset(self._in_flight),
            elapsed_seconds=self.elapsed_seconds,
            gpu_seconds=self._gpu_seconds,
        )

    def _repeats_done(self) -> dict[TrialKey, TrialSpec]:
        """Repeats of planned configurations that an earlier run of the sweep added, and that ended for good."""
        ids = {key.trial_id for key in self._planned}
        extra = [key for key in self._answered if key.trial_id in ids and key not in self._planned]
        return {key: self._answered[key].spec for key in extra if self._is_final(key)}

    def _end(self, segment: Segment, outcome: TrialOutcome) -> None:
        key = key_of(segment.spec)
        self._ledger.record(outcome)
        self._in_flight.pop(key, None)
        self._running.pop(key, None)
        self._take(outcome)
        self._show(lambda: self._view.finished(outcome, self.progress, final=self._is_final(key)))

    def _take(self, outcome: TrialOutcome) -> None:
        key = key_of(outcome.spec)
        self._answered[key] = outcome
        self._statuses[outcome.status.value] += 1
        if outcome.device.device not in (None, "cpu"):
            self._gpu_seconds += outcome.durations.trial_seconds
        if outcome.status is TrialStatus.COMPLETED and outcome.accuracy is not None:
            best = self._best.accuracy if self._best else None
            if best is None or outcome.accuracy > best:
                self._best = outcome

    def _is_final(self, key: TrialKey) -> bool:
        outcome = self._answered.get(key)
        return outcome is not None and not self._retries.has_tries_left(outcome)

    def _final_count(self) -> int:
        return sum(self._is_final(key) for key in self._planned)

    def _show(self, draw: Callable[[], None]) -> None:
        try:
            draw()
        except Exception:  # whatever a view does wrong
            logger.exception("the progress view failed; the sweep goes on")
