"""Trials for tests: small specs, and what a trial leaves behind."""

import hashlib
from typing import Any

from trainables.checkpoints import Checkpoint, Checkpoints
from trainables.outcomes import TrialOutcome
from trainables.specs import CompileMode, MeasurementProtocol, Precision, TrainingConfig, TrialSpec
from trainables.storage import Storage
from trainables.trial import Trial, TrialEnvironment, run_trial

ENTRIES = "tests.toy_entries"
ONE_THREAD = TrialEnvironment(device="cpu", cpu_threads=1, diagnose=False)
"""Without the diagnosis, which would take a second after each trial."""
DIAGNOSED = TrialEnvironment(device="cpu", cpu_threads=1)

NO_TIMING: dict[str, Any] = {"windows": 0}
"""Protocol values of a trial whose speed is not asked for: nothing is measured on a copy."""


def toy_spec(
    model: str = "mlp",
    dataset: str = "stripes",
    *,
    model_args: dict[str, Any] | None = None,
    dataset_args: dict[str, Any] | None = None,
    protocol: dict[str, Any] | None = None,
    seed: int = 0,
    **knobs: Any,
) -> TrialSpec:
    """The toy entries `model` and `dataset`; 96 training images, so 6 steps an epoch at batch 16."""
    asked: dict[str, Any] = {
        "precision": Precision.FP32,
        "batch_size": 16,
        "compile": CompileMode.OFF,
        "lr": 3e-3,
        "num_workers": 0,
    }
    return TrialSpec(
        config=TrainingConfig(**(asked | knobs)),
        model=f"{ENTRIES}:{model}",
        model_args=model_args or {},
        dataset=f"{ENTRIES}:{dataset}",
        dataset_args=dataset_args or {},
        num_classes=10,
        protocol=MeasurementProtocol(**({"epochs": 2} | NO_TIMING | (protocol or {}))),
        seed=seed,
    )


def run_toy(spec: TrialSpec, **arguments: Any) -> TrialOutcome:
    return run_trial(spec, environment=ONE_THREAD, **arguments)


def checkpoints_in(folder: Any) -> Checkpoints:
    return Checkpoints(Storage.open(str(folder)))


def last_checkpoint(spec: TrialSpec, folder: Any) -> Checkpoint:
    checkpoint, _ = checkpoints_in(folder).load(spec.trial_id, spec.replicate)
    assert checkpoint is not None
    return checkpoint


def weights_hash(checkpoint: Checkpoint) -> str:
    """Equal for bit-identical weights only: accuracy is too coarse to compare trainings by."""
    digest = hashlib.sha256()
    for name, tensor in sorted(checkpoint.model.items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.contiguous().numpy().tobytes())
    return digest.hexdigest()


def trained_hash(spec: TrialSpec, folder: Any) -> str:
    """Trains the whole trial, with its checkpoints in `folder`."""
    outcome = run_toy(spec, checkpoints=checkpoints_in(folder))
    assert outcome.status.value == "completed", outcome.status_reason
    return weights_hash(last_checkpoint(spec, folder))


def interrupted_hash(spec: TrialSpec, folder: Any, *, after: int) -> str:
    """As `trained_hash`, but the trial is ended at report number `after` and continued by another one."""
    with Trial(spec, checkpoints=checkpoints_in(folder), environment=ONE_THREAD) as trial:
        for _ in range(after):
            assert not isinstance(trial.advance(), TrialOutcome)
        trial.save()
    return trained_hash(spec, folder)
