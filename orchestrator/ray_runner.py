"""A sweep run on Ray Tune: each segment one Ray trial, its results handed to the coordinator."""

import logging
import os
import socket
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ray
from ray import tune
from ray.tune import Callback
from ray.tune.experiment import Trial

from orchestrator.coordinator import Coordinator
from orchestrator.ledger import Ledger, checkpoint_folder
from orchestrator.placement import PlacementPlan
from orchestrator.strategy import Segment
from orchestrator.tune_searcher import StrategySearcher
from trainables.outcomes import DeviceFacts, TrialStatus, outcome_from_mapping
from trainables.specs import spec_to_mapping
from trainables.tune_trainable import TrialTrainable

logger = logging.getLogger(__name__)


def run_on_ray(
    coordinator: Coordinator,
    placement: PlacementPlan,
    ledger: Ledger,
    *,
    sweep_name: str,
    trial_timeout_seconds: float | None,
    should_stop: Callable[[], bool],
    cold_compile: bool = False,
    trainable: type[tune.Trainable] = TrialTrainable,
) -> None:
    """Returns when the strategy is done, or soon after `should_stop` says so; the ledger then has every outcome."""

    def config_of(segment: Segment) -> dict[str, Any]:
        spec = segment.spec
        request = placement.request(spec.config)
        return {
            "segment": {"spec": spec_to_mapping(spec), "end": segment.end, "attempt": segment.attempt},
            "label": spec.label,
            "bundles": request.bundles,
            "cpu_threads": request.threads,
            "cold_compile": cold_compile,
            "process": _own_process(segment) if segment.fresh_process else None,
            "sweep": sweep_name,
            "driver": {"node": socket.gethostname(), "pid": os.getpid()},
            "checkpoints": ledger.storage.folder(checkpoint_folder(spec)).location,
            "working_folder": str(Path.cwd()),
        }

    searcher = StrategySearcher(coordinator, config_of)
    callback = SweepCallback(coordinator, searcher, trial_timeout_seconds)
    with tempfile.TemporaryDirectory(prefix="sweep-tune-") as beside:
        tune.Tuner(
            trainable,
            tune_config=tune.TuneConfig(
                search_alg=searcher,
                num_samples=-1,
                max_concurrent_trials=placement.most_at_once,
                reuse_actors=True,
                trial_name_creator=_readable_name,
                trial_dirname_creator=_readable_name,
            ),
            run_config=tune.RunConfig(
                name=sweep_name,
                storage_path=str(ledger.storage.local_path / "ray") if ledger.storage.is_local else beside,
                verbose=0,
                callbacks=[callback],
                stop=_StopWhen(should_stop),
                failure_config=tune.FailureConfig(max_failures=0),  # retries are the strategy's
                checkpoint_config=tune.CheckpointConfig(checkpoint_at_end=False),
            ),
        ).fit()


class SweepCallback(Callback):
    """Ray Tune's events into the coordinator's words."""

    def __init__(
        self, coordinator: Coordinator, searcher: StrategySearcher, trial_timeout_seconds: float | None
    ) -> None:
        self._coordinator = coordinator
        self._searcher = searcher
        self._trial_timeout_seconds = trial_timeout_seconds
        self._overdue: set[str] = set()
        self._actors: dict[str, Trial] = {}

    def on_trial_start(self, iteration: int, trials: list[Trial], trial: Trial, **info: Any) -> None:
        self._actors[trial.trial_id] = trial

    def on_trial_result(
        self, iteration: int, trials: list[Trial], trial: Trial, result: dict[str, Any], **info: Any
    ) -> None:
        segment = self._searcher.segments[trial.trial_id]
        if "placed" in result:
            placed = result["placed"]
            self._coordinator.started(
                segment,
                node=placed["node"],
                accelerator_ids=tuple(placed["accelerator_ids"]),
                device=DeviceFacts(**placed["device"]),
            )
        elif "progress" in result:
            self._coordinator.progressed(segment, result["progress"])
        elif "outcome" in result:
            self._coordinator.finished(segment, outcome_from_mapping(result["outcome"]))

    def on_trial_error(self, iteration: int, trials: list[Trial], trial: Trial, **info: Any) -> None:
        status, reason = _cause_of_death(trial)
        if trial.trial_id in self._overdue:
            status = TrialStatus.TIMED_OUT
            reason = (
                f"still running after --trial-timeout {self._trial_timeout_seconds:g} seconds; its process was ended"
            )
        self._coordinator.died(self._searcher.segments[trial.trial_id], status, reason)
        self._actors.pop(trial.trial_id, None)

    def on_trial_complete(self, iteration: int, trials: list[Trial], trial: Trial, **info: Any) -> None:
        self._actors.pop(trial.trial_id, None)

    def on_step_end(self, iteration: int, trials: list[Trial], **info: Any) -> None:
        self._coordinator.tick()
        if self._trial_timeout_seconds is not None:
            self._end_overdue(self._coordinator.overdue(self._trial_timeout_seconds))

    def _end_overdue(self, segments: list[Segment]) -> None:
        for trial_id, trial in self._actors.items():
            actor = trial.temporary_state.ray_actor
            if self._searcher.segments[trial_id] in segments and trial_id not in self._overdue and actor is not None:
                self._overdue.add(trial_id)
                ray.kill(actor)

    def __getstate__(self) -> dict[str, Any]:
        return {}  # Tune pickles its callbacks for a restoration that never comes


class _StopWhen(tune.Stopper):
    def __init__(self, should_stop: Callable[[], bool]) -> None:
        self._should_stop = should_stop

    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
        return False

    def stop_all(self) -> bool:
        return self._should_stop()

    def __reduce__(self) -> tuple[Any, ...]:
        return (_StopWhen, (bool,))  # pickled for a restoration that never comes


def _own_process(segment: Segment) -> str:
    """A name that no other segment has: labels leave out what the trials of a sweep usually share."""
    spec = segment.spec
    return f"{spec.label[:80]}-{spec.trial_id}-r{spec.replicate}-attempt{segment.attempt}"


def _readable_name(trial: Trial) -> str:
    return f"{trial.config['label'][:80]}-{trial.trial_id}"


def _cause_of_death(trial: Trial) -> tuple[TrialStatus, str]:
    """What Ray knows of a worker that ended without an outcome."""
    error = trial.get_error()
    text = " ".join(str(error).split()) if error else "no reason is known"
    if "running low on memory" in text or isinstance(error, ray.exceptions.OutOfMemoryError):
        return TrialStatus.OUT_OF_MEMORY, (
            "Ray's memory monitor ended the worker: the node ran out of memory; lower num_workers or batch_size, "
            f"or use a node with more memory ({text[:300]})"
        )
    return TrialStatus.LOST, (
        "its worker process died (killed, perhaps by the kernel for want of memory, or its node was lost): "
        + text[:300]
    )
