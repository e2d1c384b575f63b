"""Specs and outcomes by the one thing that a test of the orchestration is about; `built_outcomes` has every value."""

from typing import Any

from tests.built_outcomes import completed, config, ended, spec
from trainables.outcomes import TrialOutcome, TrialStatus
from trainables.specs import TrialSpec


def a_spec(*, seed: int = 0, replicate: int = 0, **knobs: Any) -> TrialSpec:
    return spec(config(**knobs), seed=seed, replicate=replicate)


def an_outcome(
    asked: TrialSpec | None = None, *, status: TrialStatus = TrialStatus.COMPLETED, **given: Any
) -> TrialOutcome:
    if status is TrialStatus.COMPLETED:
        return completed(asked, **given)
    return ended(status.value, f"it was {status.value}", asked, **given)
