"""Why a training became non-finite: its last steps replayed, in its own precision and in fp32."""

from collections.abc import Iterable
from dataclasses import replace

from trainables.bad_ends import DivergedError, bad_end
from trainables.checkpoints import Checkpoint, Checkpoints
from trainables.compilation import reset_compiler, running_eagerly
from trainables.divergence_words import divergence_clause
from trainables.evaluation import has_finite_weights
from trainables.measurements import DivergenceCause, DivergenceDiagnosis, NonFiniteIn
from trainables.process_state import forget_peak_memory, free_memory
from trainables.replay import Break, Replay, Replayed
from trainables.specs import CompileMode, Precision, TrialSpec
from trainables.training import Training
from trainables.trial_record import TrialRecord
from trainables.trial_setup import TrialParts, build_training

FEWEST_FURTHER_STEPS = 10
FURTHER_STEPS_SHARE = 0.1
"""How far beyond a break a replay must stay finite to count as surviving: steps, or a share of those before it."""


def explained(
    diverged: DivergedError, record: TrialRecord, parts: TrialParts, checkpoints: Checkpoints | None
) -> DivergedError:
    """With what a replay shows, which `record` gets. Whatever goes wrong in the replay, the trial has diverged."""
    spec = record.spec
    kept = checkpoints.newest_first(spec.trial_id, spec.replicate) if checkpoints else ()
    try:
        record.divergence = diagnose(record, parts, kept)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a user's model, data set or the device raises
        record.add_notes(f"why it diverged is not known, its replay ended early: {bad_end(error, spec).reason}")
        return diverged
    finally:
        forget_peak_memory(parts.to_device.device)  # a replay in fp32 may take more than the trial did
    return DivergedError(f"{diverged}: {divergence_clause(record.divergence, spec.config.precision)}")


def diagnose(record: TrialRecord, parts: TrialParts, checkpoints: Iterable[Checkpoint]) -> DivergenceDiagnosis:
    """`checkpoints` come newest first. The training of `parts` is over: it is released, for the device may hold no two.

    Raises whatever a model, a data set or a device raises when it is used again.
    """
    started = record.clock.read()
    ended_step = parts.training.step
    parts.training.release()
    reset_compiler()  # its graphs hold memory of the device
    free_memory()
    with running_eagerly():
        start, own = _replay_own(record, parts, checkpoints, ended_step)
        free_memory()
        in_fp32 = _replay_fp32(record, parts, start, own, ended_step)
    fp32_break = in_fp32.broken if in_fp32 else None
    return DivergenceDiagnosis(
        cause=_cause(record, own, in_fp32),
        replayed_from_step=start.step if start else 0,
        first_nonfinite_step=own.broken.step if own.broken else None,
        first_nonfinite_module=own.broken.module if own.broken else None,
        nonfinite_in=own.broken.place if own.broken else None,
        in_evaluation=own.broken is not None and own.broken.in_evaluation,
        nonfinite_images=own.broken.images if own.broken else (),
        gradient_norm_before=own.gradient_norm,
        fp32_survives=in_fp32.broken is None if in_fp32 else None,
        fp32_nonfinite_step=fp32_break.step if fp32_break else None,
        fp32_nonfinite_module=fp32_break.module if fp32_break else None,
        replay_seconds=record.clock.read() - started,
    )


def _replay_own(
    record: TrialRecord, parts: TrialParts, checkpoints: Iterable[Checkpoint], ended_step: int
) -> tuple[Checkpoint | None, Replayed]:
    """In the trial's own precision, uncompiled. Also the state that it started from; None for the very start."""
    start, training = _last_good_state(record, parts, checkpoints)
    return start, _replay(record, parts, training, broken_step=ended_step, evaluated_step=ended_step)


def _replay_fp32(
    record: TrialRecord, parts: TrialParts, start: Checkpoint | None, own: Replayed, ended_step: int
) -> Replayed | None:
    """From the same state; the first replay itself where that was in fp32. None where it has nothing to tell.

    None too where it fails: that leaves a note, and what the first replay found stands.
    """
    if record.spec.config.precision is Precision.FP32:
        return own
    if own.broken is None or own.broken.place is NonFiniteIn.INPUT:
        return None
    try:
        training = _build(_eager(record.spec, Precision.FP32), record, parts, start)
        return _replay(record, parts, training, broken_step=own.broken.step, evaluated_step=ended_step)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a user's model or the device raises
        record.add_notes(f"its replay in fp32 ended early: {bad_end(error, record.spec).reason}")
        return None


def _last_good_state(
    record: TrialRecord, parts: TrialParts, checkpoints: Iterable[Checkpoint]
) -> tuple[Checkpoint | None, Training]:
    """The newest checkpoint with finite weights, else the start, which follows from the seed."""
    spec = _eager(record.spec, record.spec.config.precision)
    for checkpoint in checkpoints:
        training = _build(spec, record, parts, checkpoint)
        if has_finite_weights(training.model):
            return checkpoint, training
        del training
        free_memory()
    return None, _build(spec, record, parts, None)


def _eager(spec: TrialSpec, precision: Precision) -> TrialSpec:
    return replace(spec, config=replace(spec.config, precision=precision, compile=CompileMode.OFF))


def _build(spec: TrialSpec, record: TrialRecord, parts: TrialParts, checkpoint: Checkpoint | None) -> Training:
    return build_training(
        spec, checkpoint, parts.data, parts.batches, parts.plan, to_device=parts.to_device, clock=record.clock
    )


def _replay(
    record: TrialRecord, parts: TrialParts, training: Training, *, broken_step: int, evaluated_step: int
) -> Replayed:
    further = max(FEWEST_FURTHER_STEPS, int(FURTHER_STEPS_SHARE * broken_step))
    return Replay(training, parts).to(
        min(broken_step + further, parts.plan.total_steps),
        evaluated_step=evaluated_step,
        protocol=record.spec.protocol,
        clock=record.clock,
    )


def _cause(record: TrialRecord, own: Replayed, in_fp32: Replayed | None) -> DivergenceCause:
    if own.broken is None:
        return DivergenceCause.COMPILE if _ran_compiled(record) else DivergenceCause.NOT_REPRODUCED
    if own.broken.place is NonFiniteIn.INPUT:
        return DivergenceCause.DATA
    if in_fp32 is None:
        return DivergenceCause.UNDECIDED
    if in_fp32.broken is not None:
        return DivergenceCause.TRAINING
    if record.spec.config.precision is Precision.FP16 and _is_of_the_scaler(own.broken):
        return DivergenceCause.LOSS_SCALE
    return DivergenceCause.PRECISION


def _ran_compiled(record: TrialRecord) -> bool:
    compiled_nothing = record.compilation is not None and record.compilation.graphs == 0
    return record.spec.config.compile is not CompileMode.OFF and not compiled_nothing


def _is_of_the_scaler(broken: Break) -> bool:
    """The forward pass is whole, so it is the scaled gradients, or what unscaling made of them."""
    return broken.place in (NonFiniteIn.GRADIENT, NonFiniteIn.WEIGHTS)
