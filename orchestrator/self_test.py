"""The instrument tested by known delays: each must land in its own column, with the error said."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from orchestrator.self_test_checks import (
    Check,
    KnownOutcome,
    bad_end_checks,
    queue_checks,
    slow_compile_checks,
    slow_data_checks,
    slow_step_checks,
)
from orchestrator.self_test_trials import (
    COMPILED,
    COMPILED_ONCE,
    SLOW_COMPILE,
    SLOW_DATA,
    SLOW_STEP,
    WARMING_UP,
    KnownTrial,
)
from trainables.delay_account import read_delays
from trainables.queued_device import QueueTiming, time_queued_device


class Instrument(Protocol):
    """What is tested."""

    def run(self, trial: KnownTrial) -> KnownOutcome: ...

    def time_queue(self) -> QueueTiming: ...


class ThisProcess:
    """Trials as everywhere, one after another in this process and without Ray."""

    def run(self, trial: KnownTrial) -> KnownOutcome:
        from trainables.trial import TrialEnvironment, run_trial  # here: torch is imported only where it is needed

        with tempfile.TemporaryDirectory() as folder:
            data, model = (str(Path(folder) / name) for name in ("data", "model"))
            outcome = run_trial(
                trial.spec(data_account=data, model_account=model),
                environment=TrialEnvironment(cpu_threads=1, diagnose=trial.diagnosed),
            )
            return KnownOutcome(trial=trial, outcome=outcome, data=read_delays(data), model=read_delays(model))

    def time_queue(self) -> QueueTiming:
        return time_queued_device()


def self_test(instrument: Instrument) -> Iterator[Check]:
    """Each check when it is known: about half a minute in all."""
    yield from queue_checks(instrument.time_queue())
    instrument.run(WARMING_UP)
    for trial in SLOW_DATA:
        slow_data = instrument.run(trial)
        yield from bad_end_checks(slow_data) or slow_data_checks(slow_data)
    slow_step = instrument.run(SLOW_STEP)
    yield from bad_end_checks(slow_step) or slow_step_checks(slow_step)
    instrument.run(COMPILED_ONCE)
    plain = [instrument.run(COMPILED) for _ in range(2)]
    slow_compile = instrument.run(SLOW_COMPILE)
    yield from bad_end_checks(*plain, slow_compile) or slow_compile_checks(plain, slow_compile)
