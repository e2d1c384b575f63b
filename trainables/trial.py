"""One trial, advanced a report at a time, whatever its end; `python -m trainables.trial SPEC.yaml` runs one here."""

import json
import sys
from collections.abc import Callable
from inspect import GEN_SUSPENDED, getgeneratorstate
from pathlib import Path
from types import TracebackType
from typing import Self

import click

from trainables.bad_ends import bad_end
from trainables.capability import trial_device
from trainables.checkpoints import Checkpoints
from trainables.errors import InputError
from trainables.intervals import interval_count
from trainables.outcomes import DeviceFacts, TrialOutcome, TrialStatus, outcome_to_mapping
from trainables.process_state import release_memory
from trainables.spec_door import read_spec
from trainables.specs import TrialSpec
from trainables.storage import Storage
from trainables.timing import DeviceClock
from trainables.trial_environment import Progress, TrialEnvironment
from trainables.trial_lines import outcome_lines, progress_line
from trainables.trial_record import TrialRecord
from trainables.trial_run import TrialRun

__all__ = ["Progress", "Trial", "TrialEnvironment", "run_trial"]


class Trial:
    """Trains one spec, or a segment of it, continued from its checkpoint where there is one.

    `advance` is called until it returns an outcome. A bad end is an outcome, never an exception.
    """

    def __init__(
        self,
        spec: TrialSpec,
        *,
        checkpoints: Checkpoints | None = None,
        segment_end: int | None = None,
        attempt: int = 1,
        environment: TrialEnvironment | None = None,
    ) -> None:
        """`segment_end` is the interval to train to, by default the last. Raises `InputError` for an unknown device."""
        environment = environment or TrialEnvironment()
        device = trial_device(environment.device)
        clock = DeviceClock.of(device)
        self._spec = spec
        self._record = TrialRecord(
            spec=spec,
            attempt=attempt,
            segment_end=interval_count(spec.protocol) if segment_end is None else segment_end,
            device=DeviceFacts(device=device.type),
            clock=clock,
            started=clock.glance(),
        )
        self._run: TrialRun | None = TrialRun(
            self._record, device=device, environment=environment, checkpoints=checkpoints
        )
        self._reports = self._run.reports()
        self._outcome: TrialOutcome | None = None

    def advance(self) -> Progress | TrialOutcome:
        """Trains to the next report; the first call sets up too. After the end it returns the outcome again."""
        if self._outcome is not None:
            return self._outcome
        try:
            return next(self._reports)
        except StopIteration as end:
            outcome: TrialOutcome = end.value
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a user's model or data set raises
            ended = bad_end(error, self._spec)
            outcome = self._record.outcome(ended.status, ended.reason)
        self._outcome = outcome
        self.close()
        return outcome

    def save(self) -> None:
        """Keeps a checkpoint at the batch cursor; does nothing before the first `advance` or after the end."""
        if self._run is not None and getgeneratorstate(self._reports) == GEN_SUSPENDED:
            self._run.save()

    def close(self) -> None:
        """Ends loader workers, frees memory, puts the process's switches back. Harmless when repeated."""
        self._reports.close()
        if self._run is not None:
            self._run = None
            release_memory()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self.save()
        self.close()


def run_trial(
    spec: TrialSpec,
    *,
    checkpoints: Checkpoints | None = None,
    segment_end: int | None = None,
    environment: TrialEnvironment | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> TrialOutcome:
    """The whole trial at once, in this process. An exception of `on_progress` leaves a checkpoint."""
    with Trial(spec, checkpoints=checkpoints, segment_end=segment_end, environment=environment) as trial:
        while not isinstance(update := trial.advance(), TrialOutcome):
            if on_progress is not None:
                on_progress(update)
    return update


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("spec_file", metavar="SPEC.yaml")
@click.option(
    "--device", help="Where to train, as torch names it: cpu, cuda:1. Default: the accelerator, else the CPU."
)
@click.option("--cpu-threads", type=click.IntRange(min=1), help="Compute threads. Default: torch's own number.")
@click.option(
    "--cold-compile", is_flag=True, help="Compile into an empty cache, so that its cost is that of the first time."
)
@click.option("--checkpoints", "folder", help="Folder or URI for checkpoints; a trial that has some there goes on.")
def main(spec_file: str, device: str | None, cpu_threads: int | None, cold_compile: bool, folder: str | None) -> None:
    """Run the one configuration of SPEC.yaml in this process, without Ray.

    Prints its progress and its outcome; the last line is the outcome as one JSON document. Exit code 0: it completed;
    1: it did not; 2: wrong input.
    """
    sys.path.insert(0, str(Path.cwd()))  # a user's entries are found where the command is given, as in a sweep
    try:
        spec = read_spec(spec_file)
        checkpoints = None if folder is None else Checkpoints(Storage.open(folder))
        environment = TrialEnvironment(device=device, cpu_threads=cpu_threads, cold_compile=cold_compile)
        click.echo(f"trial {spec.label} ({spec.trial_id}): {spec.model} on {spec.dataset}")
        outcome = run_trial(
            spec,
            checkpoints=checkpoints,
            environment=environment,
            on_progress=lambda progress: click.echo(progress_line(progress)),
        )
    except InputError as error:
        for message in error.messages:
            click.echo(message, err=True)
        sys.exit(2)
    click.echo("\n".join(outcome_lines(outcome)))
    click.echo(json.dumps(outcome_to_mapping(outcome), allow_nan=False))
    sys.exit(0 if outcome.status is TrialStatus.COMPLETED else 1)


if __name__ == "__main__":
    main()
