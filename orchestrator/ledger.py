"""A run's folder: every finished segment of work one immutable object, durable at once."""

import json
import logging
import re
from collections.abc import Mapping
from typing import Any

from trainables.errors import InputError
from trainables.outcomes import TrialOutcome, outcome_from_json, outcome_to_json
from trainables.specs import TrialSpec
from trainables.storage import Storage

OUTCOMES = "outcomes"
SPACE = "space.yaml"
ENVIRONMENT = "environment.json"
CHECKPOINTS = "checkpoints"
PROBE = ".writable"

logger = logging.getLogger(__name__)


class Ledger:
    """The truth about a run. Records are only ever added; nothing here rewrites one."""

    def __init__(self, storage: Storage, *, above: Storage | None = None) -> None:
        """`above` is the folder that a new run's own is to be made in."""
        self.storage = storage
        self._above = above
        self.unreadable: list[str] = []
        """Records that `outcomes` could not read, each named with what is wrong."""

    @classmethod
    def create(cls, location: str, name: str) -> "Ledger":
        """A new run folder `name` under `location`; nothing is written yet.

        Raises `InputError` where there can be none of that name, or there is a run already.
        """
        if not re.fullmatch(r"[^\W.][\w.+-]{0,99}", name):
            raise InputError(
                f"--name {name!r}: a run's name has 1 to 100 letters, digits, '_', '-', '+' or '.', "
                "and starts with none of the last three; give another --name"
            )
        above = Storage.open(location)
        ledger = cls(above.folder(name), above=above)
        if ledger.storage.has(SPACE):
            raise InputError(
                f"{ledger.storage.location}: there is a run already; give another --name, "
                f"or continue it with --resume {ledger.storage.location}"
            )
        return ledger

    @classmethod
    def open(cls, location: str) -> "Ledger":
        """The run folder at `location`. Raises `InputError` where there is none."""
        ledger = cls(Storage.open(location))
        if not ledger.storage.has(SPACE):
            raise InputError(
                f"{location}: no run here ({SPACE} is missing); give the folder that a sweep printed as its run"
            )
        return ledger

    def refuse_unwritable(self) -> None:
        """Raises `InputError` where nothing can be stored. A new run's folder is not made by it."""
        probed = self._above or self.storage
        try:
            probed.write(PROBE, b"")
            probed.delete(PROBE)
        except OSError as error:
            raise InputError(f"{self.storage.location}: cannot be written ({error}); give another --storage") from error

    def record(self, outcome: TrialOutcome) -> str:
        """Stores one outcome, and returns its name. Raises `FileExistsError` rather than replacing a record.

        A damaged one of that name is kept beside it, as `….json.damaged`.
        """
        name = f"{OUTCOMES}/{record_name(outcome)}"
        if self.storage.has(name):
            there = self.storage.read(name)
            if _is_record(there):
                raise FileExistsError(f"{self.storage.location}/{name} is recorded already")
            self.storage.write(f"{name}.damaged", there)
        self.storage.write(name, outcome_to_json(outcome))
        return name

    def outcomes(self) -> list[TrialOutcome]:
        """Every readable record, in order of its name; the others are named in `unreadable` and logged."""
        folder = self.storage.folder(OUTCOMES)
        found = []
        self.unreadable = []
        for name in folder.names(".json"):
            try:
                found.append(outcome_from_json(folder.read(name)))
            except ValueError as error:
                reason = f"{folder.location}/{name}: not a whole record ({str(error).splitlines()[0]}); it is left out"
                self.unreadable.append(reason)
                logger.warning(reason)
        return found

    def write_space(self, text: str) -> None:
        self.storage.write(SPACE, text.encode())

    def space_yaml(self) -> str:
        """Raises `InputError` where it is no text."""
        try:
            return self.storage.read(SPACE).decode()
        except UnicodeDecodeError as error:
            raise InputError(
                f"{self.storage.location}/{SPACE}: is damaged ({error}); write the run's search space there again"
            ) from error

    def write_environment(self, environment: Mapping[str, Any]) -> None:
        text = json.dumps(environment, indent=1, sort_keys=True, allow_nan=False) + "\n"
        self.storage.write(ENVIRONMENT, text.encode())

    def environment(self) -> dict[str, Any]:
        """What the run was started on; empty where the sweep ended before it was known.

        Raises `InputError` where it is damaged.
        """
        if not self.storage.has(ENVIRONMENT):
            return {}
        try:
            environment = json.loads(self.storage.read(ENVIRONMENT))
            if isinstance(environment, dict) and isinstance(environment.get("asked", {}), dict):
                return environment
            problem = "it holds something else"
        except ValueError as error:
            problem = str(error)
        raise InputError(
            f"{self.storage.location}/{ENVIRONMENT}: is damaged ({problem}); delete it to go on: then the defaults of "
            "--search, --num-samples and --repeats hold, and the code counts as it is now"
        )


def _is_record(data: bytes) -> bool:
    try:
        outcome_from_json(data)
    except ValueError:
        return False
    return True


def checkpoint_folder(spec: TrialSpec) -> str:
    """Of one trial and replicate, within the run's folder."""
    replicate = f"-r{spec.replicate}" if spec.replicate else ""
    return f"{CHECKPOINTS}/{spec.trial_id}{replicate}"


def record_name(outcome: TrialOutcome) -> str:
    """The record's key (trial, replicate, device model), its segment and its attempt, as a file name."""
    device = re.sub(r"[^a-z0-9]+", "-", (outcome.device.device or "unknown").lower()).strip("-") or "other"
    spec = outcome.spec
    return f"{spec.trial_id}-r{spec.replicate}-{device}-e{outcome.segment_end}-a{outcome.attempts}.json"
