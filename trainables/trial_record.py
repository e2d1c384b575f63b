"""What is known of a trial so far: an outcome can be made of it at any time, also when the trial ends badly."""

from dataclasses import dataclass, field
from datetime import UTC, datetime

from trainables.checkpoints import Checkpoint
from trainables.measurements import (
    CompileMeasurement,
    DiagnosisMeasurement,
    DivergenceDiagnosis,
    LearningCurve,
    MachineState,
    PrecisionMeasurement,
    ThroughputMeasurement,
)
from trainables.outcomes import DeviceFacts, Durations, Placement, TrialOutcome, TrialStatus
from trainables.specs import TrialSpec
from trainables.throughput import windows_of
from trainables.timing import DeviceClock, WindowTimer


@dataclass(slots=True, kw_only=True)
class TrialRecord:
    """Filled in as the trial goes on. It holds no tensors, so it outlives the model. Most fields are an outcome's."""

    spec: TrialSpec
    attempt: int
    segment_end: int
    device: DeviceFacts
    clock: DeviceClock
    started: float
    """By `clock`."""
    placement: Placement = field(default_factory=Placement)
    segment_start: int = 0
    intervals_done: int = 0
    num_classes: int | None = None
    validation_images: int | None = None
    independent_validation_images: int | None = None
    curve: LearningCurve = field(default_factory=LearningCurve)
    timer: WindowTimer | None = None
    throughput: ThroughputMeasurement | None = None
    compilation: CompileMeasurement | None = None
    precision: PrecisionMeasurement | None = None
    diagnosis: DiagnosisMeasurement | None = None
    divergence: DivergenceDiagnosis | None = None
    machine: MachineState | None = None
    peak_memory_bytes: int | None = None
    earlier: Durations = field(default_factory=Durations)
    """Of the trial before it was interrupted."""
    setup_seconds: float = 0.0
    evaluation_seconds: float = 0.0
    notes: list[str] = field(default_factory=list)

    def add_notes(self, *notes: str) -> None:
        """Each once, however often it is said."""
        self.notes += [note for note in dict.fromkeys(notes) if note not in self.notes]

    def end_interval(self, *, accuracy: float | None, validation_loss: float | None, train_loss: float | None) -> None:
        before = self.curve
        self.curve = LearningCurve(
            accuracy=(*before.accuracy, accuracy),
            validation_loss=(*before.validation_loss, validation_loss),
            train_loss=(*before.train_loss, train_loss),
        )
        self.intervals_done += 1

    def continue_from(self, checkpoint: Checkpoint) -> None:
        self.segment_start = self.intervals_done = checkpoint.interval
        self.curve = checkpoint.curve
        self.compilation = checkpoint.compilation
        self.precision = checkpoint.precision
        self.peak_memory_bytes = checkpoint.peak_memory_bytes
        self.earlier = checkpoint.durations
        self.add_notes(*checkpoint.notes)

    def durations(self) -> Durations:
        """Until now, earlier parts of the trial included."""
        earlier = self.earlier
        active_seconds = self.timer.active_seconds if self.timer else 0.0
        return Durations(
            setup_seconds=earlier.setup_seconds + self.setup_seconds,
            train_seconds=earlier.train_seconds + active_seconds,
            evaluation_seconds=earlier.evaluation_seconds + self.evaluation_seconds,
            trial_seconds=earlier.trial_seconds + self.clock.glance() - self.started,
        )

    def outcome(self, status: TrialStatus, reason: str | None = None) -> TrialOutcome:
        return TrialOutcome(
            spec=self.spec,
            status=status,
            status_reason=reason,
            attempts=self.attempt,
            segment_start=self.segment_start,
            segment_end=self.segment_end,
            epochs_completed=self.intervals_done,
            num_classes=self.num_classes,
            validation_images=self.validation_images,
            independent_validation_images=self.independent_validation_images,
            curve=self.curve if self.curve.train_loss else None,
            throughput=self.throughput or windows_of(self.timer),
            compilation=self.compilation,
            precision=self.precision,
            diagnosis=self.diagnosis,
            divergence=self.divergence,
            machine=self.machine,
            peak_memory_bytes=self.peak_memory_bytes,
            device=self.device,
            placement=self.placement,
            durations=self.durations(),
            notes=tuple(self.notes),
            finished_at=datetime.now(UTC).isoformat(timespec="seconds"),
        )
