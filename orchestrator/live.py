"""Draws a running sweep: a live table on a terminal, plain lines elsewhere."""

import sys
import time

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from orchestrator.progress import RunningTrial, SweepProgress, View
from trainables.outcomes import TrialOutcome, TrialStatus

REDRAW_SECONDS = 0.5
PLAIN_SECONDS = 30.0
MOST_ROWS = 12


def view_for(*, quiet: bool, console: Console) -> View:
    """Live on a terminal, plain lines when piped, nothing with `quiet`."""
    if quiet:
        return QuietView()
    return LiveView(console) if console.is_terminal else PlainView(console)


class QuietView:
    def started(self, trial: RunningTrial, progress: SweepProgress) -> None: ...

    def finished(self, outcome: TrialOutcome, progress: SweepProgress, *, final: bool) -> None: ...

    def tick(self, progress: SweepProgress) -> None: ...

    def close(self) -> None: ...


class PlainView:
    """A line when a trial starts, one when it ends, and a summary now and then."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._drawn = time.monotonic()

    def started(self, trial: RunningTrial, progress: SweepProgress) -> None:
        again = f" (attempt {trial.attempt})" if trial.attempt > 1 else ""
        self._line(f"{counter(progress)} start {trial.spec.label} on {place(trial)}{again}")

    def finished(self, outcome: TrialOutcome, progress: SweepProgress, *, final: bool) -> None:
        self._line(f"{counter(progress)} {ending(outcome, final=final)}")

    def tick(self, progress: SweepProgress) -> None:
        if time.monotonic() - self._drawn >= PLAIN_SECONDS:
            for trial in progress.running[:MOST_ROWS]:
                self._line(f"{counter(progress)} at    {trial.spec.label} {trial_state(trial)}")
            self._line(summary(progress))

    def close(self) -> None: ...

    def _line(self, text: str) -> None:
        self._drawn = time.monotonic()
        self._console.print(Text(text), soft_wrap=True)
        sys.stdout.flush()


class LiveView:
    """A table of what runs, under the lines of what ended."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._drawn = 0.0
        self._live = Live(console=console, auto_refresh=False, transient=True)
        self._live.start()

    def started(self, trial: RunningTrial, progress: SweepProgress) -> None:
        self._draw(progress)

    def finished(self, outcome: TrialOutcome, progress: SweepProgress, *, final: bool) -> None:
        style = "" if outcome.status is TrialStatus.COMPLETED else "yellow"
        line = Text(f"{counter(progress)} {ending(outcome, final=final)}", style=style)
        self._console.print(line, overflow="ellipsis", no_wrap=True)
        self._draw(progress)

    def tick(self, progress: SweepProgress) -> None:
        if time.monotonic() - self._drawn >= REDRAW_SECONDS:
            self._draw(progress)

    def close(self) -> None:
        self._live.stop()

    def _draw(self, progress: SweepProgress) -> None:
        self._drawn = time.monotonic()
        self._live.update(running_table(progress), refresh=True)


def running_table(progress: SweepProgress) -> RenderableType:
    """What runs where, its epoch, images/s and accuracy; then done of planned and the time left."""
    table = Table(box=None, pad_edge=False, expand=False)
    for heading, right in (("running", False), ("on", False), ("epoch", True), ("images/s", True), ("accuracy", True)):
        table.add_column(heading, justify="right" if right else "left", no_wrap=True, overflow="ellipsis")
    for trial in progress.running[:MOST_ROWS]:
        epoch = "" if trial.epoch is None else f"{trial.epoch:g}/{trial.epochs:g}"
        rate, accuracy = rate_text(trial.images_per_second), accuracy_text(trial.accuracy)
        table.add_row(Text(trial.spec.label), Text(place(trial)), epoch, rate, accuracy)
    if len(progress.running) > MOST_ROWS:
        table.add_row(f"and {len(progress.running) - MOST_ROWS} more", "", "", "", "")
    bar = ProgressBar(total=max(1, progress.planned), completed=progress.answered, width=40)
    return Group(table, bar, Text(summary(progress)))


def summary(progress: SweepProgress) -> str:
    """Done of planned, failures by kind, the most accurate so far, time gone and left."""
    parts = [f"{progress.answered} of {progress.planned} done"]
    parts += [
        f"{count} {status.replace('_', ' ')}"
        for status, count in sorted(progress.statuses.items())
        if status != TrialStatus.COMPLETED
    ]
    if progress.best is not None:
        parts.append(f"most accurate {progress.best.spec.label} {accuracy_text(progress.best.accuracy)}")
    parts.append(f"{duration_text(progress.elapsed_seconds)} gone")
    left = progress.seconds_left
    if left is not None and progress.answered < progress.planned:
        parts.append(f"about {duration_text(left)} left")
    return ", ".join(parts)


def counter(progress: SweepProgress) -> str:
    width = len(str(progress.planned))
    return f"[{progress.answered:>{width}}/{progress.planned}]"


def place(trial: RunningTrial) -> str:
    gpus = f" gpu {','.join(trial.accelerator_ids)}" if trial.accelerator_ids else ""
    return f"{trial.node or 'a node'}{gpus}"


def trial_state(trial: RunningTrial) -> str:
    epoch = "setting up" if trial.epoch is None else f"epoch {trial.epoch:g}/{trial.epochs:g}"
    return f"{epoch} {rate_text(trial.images_per_second)} images/s accuracy {accuracy_text(trial.accuracy)}"


def ending(outcome: TrialOutcome, *, final: bool) -> str:
    """One line on an ended trial, its images/s the mean over its windows."""
    seconds = duration_text(outcome.durations.trial_seconds)
    if outcome.status is not TrialStatus.COMPLETED:
        again = "" if final else "; it is tried again"
        return f"{outcome.status.value.replace('_', ' ')} {outcome.spec.label}: {outcome.status_reason}{again}"
    measured = outcome.throughput
    rate = sum(measured.window_images) / sum(measured.window_seconds) if measured else None
    return (
        f"done  {outcome.spec.label}  {rate_text(rate)} images/s  accuracy {accuracy_text(outcome.accuracy)}  {seconds}"
    )


def rate_text(images_per_second: float | None) -> str:
    return "–" if images_per_second is None else f"{images_per_second:,.0f}"


def accuracy_text(accuracy: float | None) -> str:
    return "–" if accuracy is None else f"{accuracy:.2%}"


def duration_text(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
