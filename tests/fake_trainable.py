"""A trainable with the protocol of `TrialTrainable` and no torch; a spec's `model_args` say what it does."""

import os
import signal
import time
from pathlib import Path
from typing import Any

import ray
from ray import tune

from tests.builders import an_outcome
from trainables.outcomes import TrialStatus, outcome_to_mapping
from trainables.specs import spec_from_mapping
from trainables.tune_trainable import REUSABLE_AFTER, TrialEndedBadlyError, TrialTrainable, name_process


class FakeTrainable(tune.Trainable):
    default_resource_request = TrialTrainable.default_resource_request

    def setup(self, config: dict[str, Any]) -> None:
        self.asked = config["segment"]
        self.spec = spec_from_mapping(self.asked["spec"])
        self.does = self.spec.model_args.get("does", "completed")
        self.steps = 0
        self.ended_badly = False

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        self.setup(new_config)
        return True

    def step(self) -> dict[str, Any]:
        self.steps += 1
        if self.ended_badly:
            raise TrialEndedBadlyError("retired")
        if self.steps == 1:
            ids = [str(i) for i in ray.get_runtime_context().get_accelerator_ids().get("GPU", [])]
            return {"placed": {"node": "n", "accelerator_ids": ids, "device": {"device": "fake"}}, "done": False}
        name_process(f"ray::{self.spec.label}")
        if self.does == "die" or (self.does == "die once" and self.asked["attempt"] == 1):
            os.kill(os.getpid(), signal.SIGKILL)
        if self.does == "hang":
            time.sleep(1000)
        if self.does == "gather":  # ends when four run at once
            self.gather()
        status = TrialStatus(self.does) if self.does in set(TrialStatus) else TrialStatus.COMPLETED
        self.ended_badly = status not in REUSABLE_AFTER
        outcome = an_outcome(self.spec, status=status, attempts=self.asked["attempt"], notes=(f"pid {os.getpid()}",))
        return {"outcome": outcome_to_mapping(outcome), "done": not self.ended_badly}

    def gather(self) -> None:
        folder = Path(self.spec.model_args["folder"])
        folder.mkdir(exist_ok=True)
        (folder / str(os.getpid())).touch()
        while len(list(folder.iterdir())) < 4:
            time.sleep(0.02)
