"""One trial as a Ray Tune class trainable: each `step` is one report, the last one carries the outcome."""

import dataclasses
import os
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ray
from ray import tune

from trainables.outcomes import TrialOutcome, TrialStatus, outcome_to_mapping
from trainables.specs import spec_from_mapping
from trainables.storage import Storage

if TYPE_CHECKING:
    from trainables.trial import Trial

REUSABLE_AFTER = frozenset({TrialStatus.COMPLETED, TrialStatus.STOPPED_EARLY, TrialStatus.UNSUPPORTED})
"""After any other end the process is retired: its device context, caches or memory may be spoilt."""


class TrialEndedBadlyError(Exception):
    """Raised after a bad outcome was reported, so that Ray retires the process instead of reusing it."""


class TrialTrainable(tune.Trainable):
    """The config has `segment` (spec, end, attempt) and its `label`, the resources' `bundles`, `cpu_threads`,
    `cold_compile`, `process` (a name for one that may serve no other trial, or None), `sweep`, `driver` (its `node` and
    `pid`), `checkpoints` and `working_folder`.

    The first `step` only says where it runs; torch is imported there, on the worker.
    """

    @classmethod
    def default_resource_request(cls, config: dict[str, Any]) -> tune.PlacementGroupFactory:
        """STRICT_PACK: a plain PACK may put the loader workers' CPUs on another node than the GPU."""
        # Ray reuses a process for an equal request only, and the name is part of the request
        name = {"name": config["process"]} if config["process"] else {}
        return tune.PlacementGroupFactory(config["bundles"], strategy="STRICT_PACK", **name)

    _served = 0
    """Trials, this one included."""

    def setup(self, config: dict[str, Any]) -> None:
        self._served += 1
        self._asked = config
        self._trial: Trial | None = None
        self._announced = False
        self._ended_badly: str | None = None

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        self.cleanup()
        self.setup(new_config)
        return True

    def __repr__(self) -> str:
        """What the dashboard calls the process: Ray asks once, when it starts."""
        return f"{self._asked['sweep']} from {self._asked['label']}"

    def step(self) -> dict[str, Any]:
        if self._ended_badly:
            raise TrialEndedBadlyError(self._ended_badly)
        if not self._announced:
            self._announced = True
            return {"placed": self._announce(), "done": False}
        name_process(f"ray::{self._asked['label']}")
        if self._trial is None:
            self._trial = self._start()
        update = self._trial.advance()
        if not isinstance(update, TrialOutcome):
            return {"progress": dataclasses.asdict(update), "done": False}
        self._trial.close()
        self._trial = None
        if update.status not in REUSABLE_AFTER:
            self._ended_badly = update.status.value
        update = dataclasses.replace(
            update,
            placement=dataclasses.replace(update.placement, earlier_trials=self._served - 1),
            notes=(*update.notes, *self._placement_notes(update)),
        )
        return {"outcome": outcome_to_mapping(update), "done": self._ended_badly is None}

    def cleanup(self) -> None:
        """Also called when Ray stops an unfinished trial: what was trained so far is kept as a checkpoint."""
        trial, self._trial = self._trial, None
        if trial is not None:
            trial.save()
            trial.close()

    def _announce(self) -> dict[str, Any]:
        from trainables.capability import (
            device_facts,
        )  # here: the driver imports this module and must not pay for torch

        folder = self._asked["working_folder"]
        if Path(folder).is_dir():  # relative paths mean the same here as for whoever started the sweep
            os.chdir(folder)
        if folder not in sys.path:
            sys.path.insert(0, folder)
        print(f"trial {self._asked['label']}", flush=True)  # noqa: T201 - the worker's log, which the dashboard shows
        return {
            "node": socket.gethostname(),
            "accelerator_ids": [str(i) for i in ray.get_runtime_context().get_accelerator_ids().get("GPU", [])],
            "device": dataclasses.asdict(device_facts()),
        }

    def _placement_notes(self, outcome: TrialOutcome) -> list[str]:
        gpus = self._asked["bundles"][0].get("GPU", 0)
        if gpus and outcome.device.device == "cpu":
            return ["Ray assigned it a GPU that torch does not see in the worker: it ran on the CPU"]
        if 0 < gpus < 1:
            return [f"it shared its GPU (it asked for {gpus:g} of one): its speed depends on what ran beside it"]
        return []

    def _sweep_pids(self) -> tuple[int, ...]:
        """The driver, where it runs on this node: a Ray that it started is among its descendants."""
        driver = self._asked["driver"]
        return (driver["pid"],) if driver["node"] == socket.gethostname() else ()

    def _start(self) -> "Trial":
        from trainables.checkpoints import Checkpoints
        from trainables.trial import Trial, TrialEnvironment

        segment = self._asked["segment"]
        return Trial(
            spec_from_mapping(segment["spec"]),
            checkpoints=Checkpoints(Storage.open(self._asked["checkpoints"])),
            segment_end=segment["end"],
            attempt=segment["attempt"],
            environment=TrialEnvironment(
                cpu_threads=self._asked["cpu_threads"],
                cold_compile=self._asked["cold_compile"],
                node=socket.gethostname(),
                sweep_pids=self._sweep_pids(),
            ),
        )


def name_process(title: str) -> None:
    """The dashboard lists a node's workers by this title; Ray puts its own back at the next call."""
    ray._raylet.setproctitle(title)  # type: ignore[attr-defined]
