"""Built specs and outcomes for tests: everything has a value, and a test names only what it is about."""

from typing import Any

from trainables.outcomes import (
    DeviceFacts,
    Durations,
    LearningCurve,
    ThroughputMeasurement,
    TrialOutcome,
    TrialStatus,
)
from trainables.specs import CompileMode, MeasurementProtocol, Precision, TrainingConfig, TrialSpec


def a_config(**knobs: Any) -> TrainingConfig:
    given: dict[str, Any] = {
        "precision": Precision.FP32,
        "batch_size": 64,
        "compile": CompileMode.OFF,
        "lr": 1e-3,
        "num_workers": 0,
    }
    return TrainingConfig(**given | knobs)


def a_spec(*, seed: int = 0, replicate: int = 0, epochs: int = 2, **knobs: Any) -> TrialSpec:
    return TrialSpec(
        config=a_config(**knobs),
        model="digits_cnn",
        dataset="digits",
        protocol=MeasurementProtocol(epochs=epochs),
        seed=seed,
        replicate=replicate,
    )


def an_outcome(
    spec: TrialSpec | None = None,
    *,
    status: TrialStatus = TrialStatus.COMPLETED,
    accuracy: float | None = 0.9,
    images_per_second: float = 1000.0,
    trial_seconds: float = 2.0,
    **fields: Any,
) -> TrialOutcome:
    """A completed outcome of 30 equal windows, or one of another status that measured nothing."""
    spec = spec or a_spec()
    given: dict[str, Any] = {
        "device": DeviceFacts(device="cpu"),
        "durations": Durations(trial_seconds=trial_seconds),
        "segment_end": spec.protocol.epochs or 0,
    }
    if status is TrialStatus.COMPLETED:
        given |= {
            "epochs_completed": spec.protocol.epochs,
            "num_classes": 10,
            "validation_images": 360,
            "curve": LearningCurve(accuracy=(accuracy,), train_loss=(0.3,), validation_loss=(0.4,)),
            "throughput": ThroughputMeasurement(
                window_images=(100,) * 30, window_seconds=(100 / images_per_second,) * 30, measured_on="training"
            ),
        }
    else:
        given["status_reason"] = f"it was {status.value}"
    return TrialOutcome(spec=spec, status=status, **given | fields)
