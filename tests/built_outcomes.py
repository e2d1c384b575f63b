"""Outcomes built by hand for the tests of everything that compares and reports: every number is exact."""

from typing import Any

from trainables.measurements import (
    CompileMeasurement,
    DiagnosisMeasurement,
    LearningCurve,
    PrecisionMeasurement,
    ThroughputMeasurement,
)
from trainables.outcomes import DeviceFacts, Durations, Placement, TrialOutcome, TrialStatus
from trainables.specs import CompileMode, MeasurementProtocol, Precision, TrainingConfig, TrialSpec


def config(
    precision: str = "fp32",
    batch_size: int = 64,
    compile: str = "off",  # noqa: A002 - the knob's own name
    lr: float = 1e-3,
    num_workers: int = 0,
    **further: Any,
) -> TrainingConfig:
    return TrainingConfig(
        precision=Precision(precision),
        batch_size=batch_size,
        compile=CompileMode(compile),
        lr=lr,
        num_workers=num_workers,
        **further,
    )


def spec(knobs: TrainingConfig | None = None, **given: Any) -> TrialSpec:
    asked: dict[str, Any] = {"model": "digits_cnn", "dataset": "digits", "protocol": MeasurementProtocol(epochs=20)}
    return TrialSpec(config=knobs or config(), **(asked | given))


def windows(rate: float, count: int = 30, measured_on: str = "training") -> ThroughputMeasurement:
    """Windows that are all alike, so that the interval is the between-process one alone."""
    return ThroughputMeasurement(
        window_images=(128,) * count, window_seconds=(128 / rate,) * count, measured_on=measured_on
    )


def parts(compute: float | None, loader: float | None, **given: Any) -> DiagnosisMeasurement:
    """A diagnosis that found these rates, exactly."""
    return DiagnosisMeasurement(
        compute=None if compute is None else windows(compute, measured_on="resident_batch"),
        loader=None if loader is None else windows(loader, measured_on="loader"),
        **({"diagnosis_seconds": 1.0} | given),
    )


def completed(
    asked: TrialSpec | None = None,
    *,
    rate: float | None = 1000.0,
    accuracy: float | None = 0.97,
    loss: float = 0.1,
    images: int | None = 360,
    **given: Any,
) -> TrialOutcome:
    """A trial that ended as it should, on 2 threads of a CPU."""
    asked = asked or spec()
    compiled = asked.config.compile is not CompileMode.OFF
    values: dict[str, Any] = {
        "status": TrialStatus.COMPLETED,
        "segment_end": 20,
        "epochs_completed": 20,
        "num_classes": 10,
        "validation_images": images,
        "curve": LearningCurve(accuracy=(0.5, accuracy), validation_loss=(2.0, loss), train_loss=(2.0, loss)),
        "throughput": windows(rate) if rate is not None else None,
        "compilation": CompileMeasurement(compile_seconds=8.0, graph_breaks=0) if compiled else None,
        "precision": PrecisionMeasurement(executed_precision=asked.config.precision.value),
        "device": DeviceFacts(device="cpu", torch_version="2.14.1"),
        "placement": Placement(node="here", cpu_threads=2, neighbours=0),
        "durations": Durations(train_seconds=30.0, evaluation_seconds=1.0, setup_seconds=0.5, trial_seconds=32.0),
    }
    return TrialOutcome(spec=asked, **(values | given))


def ended(status: str, reason: str | None = None, asked: TrialSpec | None = None, **given: Any) -> TrialOutcome:
    """A trial that did not complete."""
    values: dict[str, Any] = {"device": DeviceFacts(device="cpu", torch_version="2.14.1")}
    return TrialOutcome(spec=asked or spec(), status=TrialStatus(status), status_reason=reason, **(values | given))
