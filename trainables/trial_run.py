"""One trial from its set-up to its outcome, suspended at every report."""

import math
from collections.abc import Generator
from contextlib import ExitStack

import torch

from trainables.bad_ends import DivergedError, UnsupportedError, bad_end
from trainables.capability import Capability, emulation_note, facts_of, find_capability, unsupported_reason
from trainables.checkpoints import Checkpoint, Checkpoints
from trainables.compilation import compile_seconds, fresh_compile_cache
from trainables.compile_account import CompileAccount, compile_measurement
from trainables.diagnosis import diagnose, diagnosis_budget
from trainables.divergence import explained
from trainables.evaluation import Evaluation, evaluate, has_finite_weights
from trainables.machine_state import MachineWatch, ThisMachine
from trainables.measurements import CompileMeasurement
from trainables.outcomes import Placement, TrialOutcome, TrialStatus, finite_or_none
from trainables.precision import Switches
from trainables.precision_account import precision_measurement
from trainables.process_state import peak_memory_bytes, process_for_a_trial
from trainables.random_state import generator_states
from trainables.specs import CompileMode
from trainables.throughput import measure_on_a_copy, more_windows, needs_a_copy, seconds_per_image, windows_of
from trainables.timing import DeviceClock
from trainables.trial_environment import Progress, TrialEnvironment
from trainables.trial_record import TrialRecord
from trainables.trial_setup import TrialParts, build_parts


class TrialRun:
    """A trial that is under way. Exceptions go through it; `Trial` makes outcomes of them."""

    def __init__(
        self,
        record: TrialRecord,
        *,
        device: torch.device,
        environment: TrialEnvironment,
        checkpoints: Checkpoints | None,
    ) -> None:
        self._record = record
        self._spec = record.spec
        self._clock: DeviceClock = record.clock
        self._device = device
        self._environment = environment
        self._checkpoints = checkpoints
        self._last_saved = record.started
        self._parts: TrialParts | None = None
        self._capability: Capability
        self._steps_before = 0
        self._compiled_before: CompileMeasurement | None = None
        self._watch: MachineWatch | None = None

    def reports(self) -> Generator[Progress, None, TrialOutcome]:
        """Trains from report to report; what it returns at its end is the outcome of a trial that ended well."""
        self._check_capability()
        with ExitStack() as resources:
            resources.enter_context(process_for_a_trial(self._device, cpu_threads=self._environment.cpu_threads))
            resources.callback(self._account_for_memory)
            parts = self._set_up(resources)
            try:
                yield from self._train(parts)
            except DivergedError as error:
                raise self._why(error, parts) from None
            self._save(parts)
            self._measure(parts)
            return self._outcome(parts)

    def save(self) -> None:
        """A checkpoint at the batch cursor. Does nothing before the set-up."""
        if self._parts is not None:
            self._save(self._parts)

    def _check_capability(self) -> None:
        config = self._spec.config
        capability = find_capability(self._device)
        self._record.device = facts_of(capability)
        self._capability = capability
        if reason := unsupported_reason(config, capability):
            raise UnsupportedError(reason)
        if note := emulation_note(config.precision, capability):
            self._record.add_notes(note)

    def _set_up(self, resources: ExitStack) -> TrialParts:
        record = self._record
        record.placement = Placement(node=self._environment.node, cpu_threads=torch.get_num_threads())
        checkpoint = self._latest_checkpoint()
        if self._environment.cold_compile and self._spec.config.compile is not CompileMode.OFF:
            resources.enter_context(fresh_compile_cache())
        parts = build_parts(self._spec, checkpoint, device=self._device, clock=self._clock, resources=resources)
        if checkpoint is not None:
            record.continue_from(checkpoint)
            self._compiled_before = checkpoint.compilation
        record.timer = parts.timer
        record.num_classes = parts.data.num_classes
        record.validation_images = parts.validation.images
        record.independent_validation_images = parts.data.independent_validation_images
        record.add_notes(*parts.data.notes, *parts.batches.notes)
        record.setup_seconds = self._clock.read() - record.started
        self._steps_before = parts.training.step
        self._parts = parts
        return parts

    def _latest_checkpoint(self) -> Checkpoint | None:
        if self._checkpoints is None:
            return None
        checkpoint, notes = self._checkpoints.load(self._spec.trial_id, self._spec.replicate)
        self._record.add_notes(*notes)
        return checkpoint

    def _train(self, parts: TrialParts) -> Generator[Progress, None, None]:
        """Until the segment's end. The timer runs while steps are taken and epochs begun, and at no other time."""
        training, plan, timer = parts.training, parts.plan, parts.timer
        segment_end = min(self._record.segment_end, plan.intervals)
        uncounted_steps = self._warmup_steps(parts)
        self._watch_machine()
        while training.interval < segment_end:
            timer.resume(uncounted_steps=uncounted_steps)
            training.train_to(plan.next_report(training.step, training.interval), timer)
            timer.pause()
            self._look_at_machine()
            training.check_losses()
            if training.step == plan.interval_end(training.interval):
                self._end_interval(parts)
            self._account_for_compiler(parts)
            if training.interval < segment_end:
                self._save_if_due(parts)
                yield self._progress(parts)
            uncounted_steps = self._batches_loaded_ahead if training.is_within_epoch else 0
        self._look_at_machine(at_end=True)

    def _watch_machine(self) -> None:
        try:
            machine = ThisMachine(self._device, sweep_pids=self._environment.sweep_pids)
            self._watch = MachineWatch(machine, glance=self._clock.glance)
        except Exception as error:  # noqa: BLE001 - a training is worth more than what surrounds it
            self._give_up_watching(error)

    def _look_at_machine(self, *, at_end: bool = False) -> None:
        if self._watch is None:
            return
        try:
            self._record.machine = self._watch.look() if at_end else self._watch.look_if_due() or self._record.machine
        except Exception as error:  # noqa: BLE001 - as above
            self._give_up_watching(error)

    def _give_up_watching(self, error: Exception) -> None:
        self._watch = None
        self._record.add_notes(f"the state of the machine is not known: {type(error).__name__}: {error}")

    def _warmup_steps(self, parts: TrialParts) -> int:
        taken = parts.training.step - self._steps_before
        return max(0, self._spec.protocol.warmup_steps - taken) + self._batches_loaded_ahead

    @property
    def _batches_loaded_ahead(self) -> int:
        """What loader workers prepare while the training waits: batches that cost the timed steps nothing."""
        return self._spec.config.num_workers * self._spec.config.prefetch_factor

    def _end_interval(self, parts: TrialParts) -> None:
        training, record = parts.training, self._record
        started = self._clock.read()
        evaluation = evaluate(
            training.model,
            parts.validation,
            parts.to_device,
            autocast=training.optimization.autocast,
            probe=None if training.dtypes.has_watched else training.dtypes,
        )
        record.evaluation_seconds += self._clock.read() - started
        record.end_interval(
            accuracy=evaluation.accuracy if parts.data.scored else None,
            validation_loss=finite_or_none(evaluation.loss),
            train_loss=finite_or_none(training.end_interval()),
        )
        scaler = training.optimization.scaler
        record.precision = precision_measurement(
            self._spec.config.precision,
            self._capability,
            seen=training.dtypes.seen,
            switches=Switches.now(),
            loss_scale=None if scaler is None else scaler.get_scale(),
            skipped_steps=training.skipped_steps,
            before=record.precision,
        )
        _check_evaluation(evaluation, parts)

    def _account_for_compiler(self, parts: TrialParts) -> None:
        mode = self._spec.config.compile
        if mode is CompileMode.OFF or parts.training.first_step_seconds is None:
            return
        account = CompileAccount.now()
        per_image = seconds_per_image(self._record.throughput or windows_of(parts.timer))
        typical = None if per_image is None else per_image * parts.batches.batch_size
        self._record.compilation = compile_measurement(
            account,
            compile_seconds=compile_seconds(parts.training.first_step_seconds, typical),
            cache=parts.training.first_step_cache,
            disturbances_while_timed=parts.timer.disturbances_while_timed,
            before=self._compiled_before,
        )
        self._record.add_notes(*account.notes(mode, self._device.type))

    def _account_for_memory(self) -> None:
        known = [self._record.peak_memory_bytes, peak_memory_bytes(self._device)]
        self._record.peak_memory_bytes = max((peak for peak in known if peak is not None), default=None)

    def _save_if_due(self, parts: TrialParts) -> None:
        if self._clock.glance() - self._last_saved >= self._environment.checkpoint_every_seconds:
            self._save(parts)

    def _save(self, parts: TrialParts) -> None:
        if self._checkpoints is None:
            return
        record = self._record
        self._account_for_memory()
        self._checkpoints.save(
            Checkpoint(
                trial_id=self._spec.trial_id,
                replicate=self._spec.replicate,
                **parts.training.state(),
                generators=generator_states(self._device),
                curve=record.curve,
                window_images=tuple(parts.timer.window_images),
                window_seconds=tuple(parts.timer.window_seconds),
                window_merges=parts.timer.merges,
                durations=record.durations(),
                compilation=record.compilation,
                precision=record.precision,
                peak_memory_bytes=record.peak_memory_bytes,
                notes=tuple(record.notes),
            )
        )
        self._last_saved = self._clock.glance()

    def _measure(self, parts: TrialParts) -> None:
        """After the last evaluation and the last checkpoint: nothing that is kept can be changed by it."""
        protocol, record = self._spec.protocol, self._record
        record.throughput = windows_of(parts.timer)
        if needs_a_copy(parts.timer, protocol):
            try:
                copied = measure_on_a_copy(parts, protocol, self._clock, uncounted_steps=self._warmup_steps(parts))
            except (Exception, SystemExit) as error:  # noqa: BLE001 - the training itself ended well, only its speed is not known
                record.add_notes(f"measuring on a copy ended early: {bad_end(error, self._spec).reason}")
            else:
                record.throughput = more_windows(record.throughput, copied)
        if record.throughput is None:
            record.add_notes(
                "too short to be timed: no window of "
                f"{protocol.window_steps} steps and {protocol.window_seconds:g} seconds; its throughput is not known"
            )
        self._account_for_compiler(parts)
        self._account_for_memory()
        self._diagnose(parts)

    def _diagnose(self, parts: TrialParts) -> None:
        """Last of all: what it runs is neither the training's own cost nor its memory."""
        record = self._record
        if not self._environment.diagnose:
            return
        budget = diagnosis_budget(self._clock.glance() - record.started)
        record.diagnosis, notes = diagnose(
            parts, self._spec, self._clock, throughput=record.throughput, budget_seconds=budget
        )
        record.add_notes(*notes)

    def _why(self, diverged: DivergedError, parts: TrialParts) -> DivergedError:
        self._account_for_compiler(parts)
        self._account_for_memory()
        return explained(diverged, self._record, parts, self._checkpoints)

    def _outcome(self, parts: TrialParts) -> TrialOutcome:
        done, whole = parts.training.interval, parts.plan.intervals
        if done >= whole:
            return self._record.outcome(TrialStatus.COMPLETED)
        return self._record.outcome(TrialStatus.STOPPED_EARLY, f"its segment ended after {done} of {whole} epochs")

    def _progress(self, parts: TrialParts) -> Progress:
        training, curve = parts.training, self._record.curve
        return Progress(
            epoch=parts.plan.intervals_done(training.step, training.interval),
            epochs=parts.plan.intervals,
            step=training.step,
            images_per_second=parts.timer.recent_rate(),
            accuracy=curve.accuracy[-1] if curve.accuracy else None,
            train_loss=curve.train_loss[-1] if curve.train_loss else None,
        )


def _check_evaluation(evaluation: Evaluation, parts: TrialParts) -> None:
    """A finite accuracy must not hide that there is nothing left to evaluate."""
    step = parts.training.step
    if not math.isfinite(evaluation.loss):
        became = "NaN" if math.isnan(evaluation.loss) else "infinite"
        raise DivergedError(f"validation loss became {became} by step {step}")
    if not has_finite_weights(parts.training.model):
        raise DivergedError(f"weights became NaN or infinite by step {step}")
