"""What a trial found: the frozen types of its typed outcome, and the one door to and from JSON."""

import json
import math
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Any

from pydantic import ConfigDict, TypeAdapter

from trainables.measurements import (
    CompileMeasurement,
    DiagnosisMeasurement,
    DivergenceDiagnosis,
    LearningCurve,
    MachineState,
    PrecisionMeasurement,
    ThroughputMeasurement,
)
from trainables.specs import MEASUREMENT_VERSION, TrialSpec


class TrialStatus(StrEnum):
    """How a trial ended; the set is closed."""

    COMPLETED = "completed"
    STOPPED_EARLY = "stopped_early"
    """Ended before its last epoch by a strategy's decision."""
    UNSUPPORTED = "unsupported"
    """The hardware, the toolchain or the cluster cannot run it; nothing was trained."""
    OUT_OF_MEMORY = "out_of_memory"
    DIVERGED = "diverged"
    """The loss became NaN or infinite."""
    TIMED_OUT = "timed_out"
    FAILED = "failed"
    """It raised an exception."""
    LOST = "lost"
    """Its worker process or node died."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceFacts:
    device: str | None = None
    """The GPU's model name (`NVIDIA H200`), or `cpu`; None where the trial never came to run on one."""
    compute_capability: str | None = None
    """`9.0`; None on a CPU."""
    torch_version: str | None = None
    cuda_version: str | None = None
    driver_version: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    node: str | None = None
    accelerator_ids: tuple[str, ...] = ()
    """The GPUs that Ray assigned, by their index on the node."""
    neighbours: int | None = None
    """Most other trials of this sweep that ran on the node at the same time."""
    cpu_threads: int | None = None
    """Compute threads of the training process."""
    earlier_trials: int | None = None
    """Trials that its process had served before it; 0 in a fresh one, None outside of a sweep."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Durations:
    """Seconds, summed over the trial's segments and resumptions."""

    setup_seconds: float = 0.0
    """Data set, model, loader and first-use of the device, before the first step."""
    train_seconds: float = 0.0
    """Training steps, compilation included; without evaluation, checkpoints and measuring on a copy."""
    evaluation_seconds: float = 0.0
    trial_seconds: float = 0.0
    """All of it, wall clock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialOutcome:
    """The one record of a finished segment of a trial. Measurements are there exactly when something was measured."""

    __pydantic_config__ = ConfigDict(allow_inf_nan=False, extra="forbid")

    spec: TrialSpec
    status: TrialStatus
    status_reason: str | None = None
    """A sentence for every status but `completed`."""
    attempts: int = 1
    segment_start: int = 0
    """Epochs (or report intervals, with `max_steps`) done before this segment."""
    segment_end: int = 0
    """Epochs (or report intervals) that this segment was to reach."""
    epochs_completed: int = 0
    num_classes: int | None = None
    validation_images: int | None = None
    independent_validation_images: int | None = None
    """Fewer than `validation_images` where validation images were grown from fewer source images."""
    curve: LearningCurve | None = None
    throughput: ThroughputMeasurement | None = None
    compilation: CompileMeasurement | None = None
    precision: PrecisionMeasurement | None = None
    diagnosis: DiagnosisMeasurement | None = None
    divergence: DivergenceDiagnosis | None = None
    """Of a trial that diverged, where its last good state could be replayed."""
    machine: MachineState | None = None
    peak_memory_bytes: int | None = None
    """Largest memory allocated on the GPU; None on a CPU."""
    device: DeviceFacts = DeviceFacts()
    placement: Placement = Placement()
    durations: Durations = Durations()
    notes: tuple[str, ...] = ()
    """Sentences on what was done otherwise than asked, such as an option left out at `num_workers` 0."""
    finished_at: str | None = None
    """ISO 8601, UTC."""
    measurement_version: int = MEASUREMENT_VERSION

    @property
    def accuracy(self) -> float | None:
        """Validation accuracy after the last epoch."""
        return self.curve.accuracy[-1] if self.curve and self.curve.accuracy else None


@cache
def _adapter() -> TypeAdapter[TrialOutcome]:
    return TypeAdapter(TrialOutcome)


def outcome_to_mapping(outcome: TrialOutcome) -> dict[str, Any]:
    """Plain values, as strict JSON carries them."""
    mapping: dict[str, Any] = _adapter().dump_python(outcome, mode="json")
    return mapping


def outcome_from_mapping(mapping: dict[str, Any]) -> TrialOutcome:
    """Raises `ValueError` (pydantic's ValidationError) where the mapping is not an outcome."""
    return _adapter().validate_json(json.dumps(mapping, allow_nan=False))


def outcome_to_json(outcome: TrialOutcome) -> bytes:
    """Canonical, strict JSON: the bytes of a record."""
    return json.dumps(outcome_to_mapping(outcome), sort_keys=True, allow_nan=False, indent=1).encode() + b"\n"


def outcome_from_json(data: bytes) -> TrialOutcome:
    """Raises `ValueError` where the bytes are not one whole outcome."""
    return _adapter().validate_json(data)


def finite_or_none(value: float) -> float | None:
    """The door for numbers that a training made: NaN and the infinities become None."""
    return value if math.isfinite(value) else None
