"""A trial's progress and outcome in words, for the command that runs one trial."""

from collections.abc import Iterator

from trainables.measurements import CompileMeasurement
from trainables.outcomes import TrialOutcome, TrialStatus
from trainables.throughput import seconds_per_image
from trainables.trial_environment import Progress


def progress_line(progress: Progress) -> str:
    parts = [f"epoch {progress.epoch:g} of {progress.epochs}", f"step {progress.step}"]
    if progress.images_per_second is not None:
        parts.append(f"{progress.images_per_second:,.0f} images/s")
    if progress.accuracy is not None:
        parts.append(f"accuracy {progress.accuracy:.2%}")
    if progress.train_loss is not None:
        parts.append(f"training loss {progress.train_loss:.4f}")
    return ", ".join(parts)


def outcome_lines(outcome: TrialOutcome) -> Iterator[str]:
    """The end, what was measured, and what was done otherwise than asked."""
    ending = outcome.status.value.replace("_", " ")
    yield ending if outcome.status_reason is None else f"{ending}: {outcome.status_reason}"
    if outcome.accuracy is not None:
        yield f"accuracy {outcome.accuracy:.2%} of {outcome.validation_images:,} validation images"
    yield from _measured(outcome)
    for note in outcome.notes:
        yield f"note: {note}"


def _measured(outcome: TrialOutcome) -> Iterator[str]:
    per_image = seconds_per_image(outcome.throughput)
    if outcome.throughput is not None and per_image:
        windows = len(outcome.throughput.window_images)
        where = "in training" if outcome.throughput.measured_on == "training" else "after it, on a copy"
        yield f"{1 / per_image:,.0f} images/s (median of {windows} windows {where}) on {outcome.device.device}"
    yield from _parts_alone(outcome)
    if outcome.precision is not None:
        skipped = outcome.precision.skipped_steps
        left_out = "" if skipped is None else f", {skipped} steps skipped by the GradScaler"
        yield f"ran in {outcome.precision.executed_precision}{left_out}"
    if outcome.compilation is not None and outcome.compilation.compile_seconds is not None:
        yield _compiled(outcome.compilation)
    if (found := outcome.divergence) is not None:
        norm = found.gradient_norm_before
        gradient = "" if norm is None else f"; gradient norm {norm:.3g} at the last finite step"
        yield f"replayed from step {found.replayed_from_step} in {found.replay_seconds:.1f} s{gradient}"
    if outcome.status is TrialStatus.COMPLETED:
        seconds = outcome.durations
        yield f"{seconds.trial_seconds:.1f} s in all, {seconds.train_seconds:.1f} s of them training"


def _compiled(measured: CompileMeasurement) -> str:
    cache = measured.cache or "unknown"
    counts = f"{measured.graphs} graphs, {measured.graph_breaks} graph breaks, {measured.recompilations} recompilations"
    gave_up = "; the compiler gave up on a part, which ran eagerly" if measured.gave_up else ""
    return f"compiled in {measured.compile_seconds:.1f} s (cache {cache}): {counts}{gave_up}"


def _parts_alone(outcome: TrialOutcome) -> Iterator[str]:
    """The other two of the three rates; what limits the first is the report's to say."""
    diagnosis = outcome.diagnosis
    if diagnosis is None:
        return
    for part, measured in (("compute", diagnosis.compute), ("the loader", diagnosis.loader)):
        if per_image := seconds_per_image(measured):
            yield f"{1 / per_image:,.0f} images/s by {part} alone"
    if diagnosis.host_fraction is not None:
        yield f"the host needs {diagnosis.host_fraction:.0%} of compute's time to give the steps to the device"
