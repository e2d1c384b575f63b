"""A strategy replayed on generated records in simulated time: workers that are always free to take the next segment."""

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field

from orchestrator.strategy import Pause, Segment, Strategy, SweepState, TrialKey, key_of
from trainables.outcomes import TrialOutcome


@dataclass(slots=True, kw_only=True)
class Replay:
    """Everything that a sweep knows; `run` goes on until the strategy is done, or until so many outcomes."""

    strategy: Strategy
    answer: Callable[[Segment], TrialOutcome]
    """The record that a segment leaves."""
    workers: int = 1
    answered: dict[TrialKey, TrialOutcome] = field(default_factory=dict)
    started: list[Segment] = field(default_factory=list)
    now: float = 0.0

    def run(self, *, until: int | None = None) -> None:
        running: list[tuple[float, int, TrialOutcome]] = []
        ended = 0
        while ended != until:
            proposal = Pause.WAIT if len(running) == self.workers else self.strategy.propose(self._state(running))
            if isinstance(proposal, Segment):
                self.started.append(proposal)
                outcome = self.answer(proposal)
                heapq.heappush(running, (self.now + outcome.durations.trial_seconds, len(self.started), outcome))
            elif proposal is Pause.DONE:
                assert not running
                return
            else:
                self.now, _, outcome = heapq.heappop(running)
                self.answered[key_of(outcome.spec)] = outcome
                ended += 1

    def _state(self, running: list[tuple[float, int, TrialOutcome]]) -> SweepState:
        return SweepState(
            answered=self.answered,
            in_flight=frozenset(key_of(outcome.spec) for _, _, outcome in running),
            elapsed_seconds=self.now,
            gpu_seconds=0.0,
        )
