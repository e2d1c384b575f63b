"""Which segment of work comes next: a pure function of the plan, the records, what is in flight, and the clock."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import NamedTuple, Protocol

from trainables.outcomes import TrialOutcome, TrialStatus
from trainables.specs import TrialSpec


class TrialKey(NamedTuple):
    trial_id: str
    replicate: int


def key_of(spec: TrialSpec) -> TrialKey:
    return TrialKey(spec.trial_id, spec.replicate)


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """The epochs (or report intervals) of a spec up to `end`, continued from its checkpoint where there is one."""

    spec: TrialSpec
    end: int | None = None
    """None: to the trial's own end."""
    attempt: int = 1
    fresh_process: bool = False
    """Must not run in a process that ran another trial."""


class Pause(Enum):
    WAIT = "nothing to start until something in flight ends"
    DONE = "nothing more to start, ever"


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepState:
    """All that a strategy may know."""

    answered: Mapping[TrialKey, TrialOutcome]
    """The newest record of each trial."""
    in_flight: frozenset[TrialKey]
    elapsed_seconds: float
    """Since the sweep, or its resumption, began."""
    gpu_seconds: float
    """Spent by all records, earlier ones of the run included."""


class Strategy(Protocol):
    def propose(self, state: SweepState) -> Segment | Pause: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """`lost` is tried again up to a limit, `failed` once in a fresh process (a deterministic bug repeats itself)."""

    lost_retries: int = 2
    failed_retries: int = 1

    def has_tries_left(self, outcome: TrialOutcome) -> bool:
        allowed = {TrialStatus.LOST: self.lost_retries, TrialStatus.FAILED: self.failed_retries}
        return outcome.attempts <= allowed.get(outcome.status, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedStrategy:
    """A fixed list of whole trials, in order; retries come after everything that was never tried.

    Grid and random search are both such lists: the list of a random search is drawn before it starts.
    """

    planned: tuple[TrialSpec, ...]
    keys: tuple[TrialKey, ...]
    """Of the planned trials, in their order: an identity is a hash, too slow to compute at every proposal."""
    retries: RetryPolicy

    @classmethod
    def of(cls, specs: Iterable[TrialSpec], retries: RetryPolicy) -> "PlannedStrategy":
        planned = tuple(specs)
        return cls(planned=planned, keys=tuple(map(key_of, planned)), retries=retries)

    def propose(self, state: SweepState) -> Segment | Pause:
        retry = None
        for spec, key in zip(self.planned, self.keys, strict=True):
            if key in state.in_flight:
                continue
            outcome = state.answered.get(key)
            if outcome is None:
                return Segment(spec=spec, fresh_process=spec.replicate > 0)
            if retry is None and self.retries.has_tries_left(outcome):
                retry = Segment(spec=spec, attempt=outcome.attempts + 1, fresh_process=True)
        if retry is not None:
            return retry
        return Pause.WAIT if state.in_flight else Pause.DONE


@dataclass(frozen=True, slots=True, kw_only=True)
class IsolatedStrategy:
    """Another strategy, each segment in a process that served no trial before and serves none after."""

    inner: Strategy

    def propose(self, state: SweepState) -> Segment | Pause:
        proposal = self.inner.propose(state)
        return replace(proposal, fresh_process=True) if isinstance(proposal, Segment) else proposal


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetedStrategy:
    """Another strategy until a budget is spent; what is in flight then is left to end."""

    inner: Strategy
    gpu_seconds: float | None = None
    seconds: float | None = None

    def propose(self, state: SweepState) -> Segment | Pause:
        if self.spent(state):
            return Pause.WAIT if state.in_flight else Pause.DONE
        return self.inner.propose(state)

    def spent(self, state: SweepState) -> bool:
        over_gpu = self.gpu_seconds is not None and state.gpu_seconds >= self.gpu_seconds
        return over_gpu or (self.seconds is not None and state.elapsed_seconds >= self.seconds)
