"""What is running, as values: the state that a live view draws."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Protocol

from trainables.outcomes import TrialOutcome
from trainables.specs import TrialSpec


@dataclass(slots=True, kw_only=True)
class RunningTrial:
    """One trial in flight; filled in as its worker reports."""

    spec: TrialSpec
    attempt: int
    started_seconds: float
    """Since the sweep began."""
    node: str | None = None
    accelerator_ids: tuple[str, ...] = ()
    neighbours: int | None = None
    epoch: float | None = None
    epochs: float | None = None
    images_per_second: float | None = None
    accuracy: float | None = None


@dataclass(slots=True, kw_only=True)
class SweepProgress:
    """All that a view may show."""

    planned: int
    answered: int = 0
    """Planned trials with a final outcome, those of earlier runs of this folder included."""
    answered_before: int = 0
    elapsed_seconds: float = 0.0
    running: list[RunningTrial] = field(default_factory=list)
    statuses: Counter[str] = field(default_factory=Counter)
    best: TrialOutcome | None = None
    """The most accurate so far (for unscored data sets: none)."""

    @property
    def seconds_left(self) -> float | None:
        """From the mean pace so far; None before the first trial ended."""
        done_now = self.answered - self.answered_before
        if done_now <= 0:
            return None
        return self.elapsed_seconds / done_now * (self.planned - self.answered)


class View(Protocol):
    """What shows a sweep while it runs. An exception in one is logged, and the sweep goes on."""

    def started(self, trial: RunningTrial, progress: SweepProgress) -> None: ...

    def finished(self, outcome: TrialOutcome, progress: SweepProgress, *, final: bool) -> None:
        """`final` is false where the trial will be tried again."""

    def tick(self, progress: SweepProgress) -> None:
        """Called often; a view draws at its own pace."""

    def close(self) -> None: ...
