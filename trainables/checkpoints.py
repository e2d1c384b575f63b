"""Checkpoints: the two latest of a trial, of plain tensors and numbers, whole or not there."""

import io
import pickle
import re
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import torch
from torch import Tensor

from trainables.measurements import CompileMeasurement, LearningCurve, PrecisionMeasurement
from trainables.outcomes import Durations
from trainables.storage import Storage

FORMAT = 1
"""Raised when a checkpoint's content changes; another format's is passed over."""
KEPT = 2

_NAME = re.compile(r"step-(\d{9})\.pt")
_UNREADABLE = (
    EOFError,
    KeyError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
    pickle.UnpicklingError,
    zipfile.BadZipFile,
)
"""What torch raises on files that are cut off, garbage, or of something else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """Everything that a training needs to go on as if it had never stopped, also within an epoch."""

    trial_id: str
    replicate: int
    model: dict[str, Any]
    """State dict of the uncompiled module: no `_orig_mod.` anywhere."""
    optimizer: dict[str, Any]
    schedule: dict[str, Any]
    scaler: dict[str, Any] | None
    generators: dict[str, Any]
    """As `random_state.generator_states` gives them."""
    interval: int
    """Intervals done."""
    epoch: int
    """The epoch that the next batch is of, from 0."""
    batch: int
    """Batches of that epoch done."""
    step: int
    """Optimizer steps done in all, skipped ones included."""
    losses: Tensor
    """Float32: the loss of each step done of the interval in hand."""
    skipped_steps: int | None
    curve: LearningCurve
    window_images: tuple[int, ...]
    window_seconds: tuple[float, ...]
    window_merges: int
    durations: Durations
    compilation: CompileMeasurement | None
    precision: PrecisionMeasurement | None
    peak_memory_bytes: int | None
    notes: tuple[str, ...]


class Checkpoints:
    """A trial's folder of checkpoints."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._good: list[str] = []
        """Names known to be whole, because they were read or written here, oldest first."""

    def save(self, checkpoint: Checkpoint) -> None:
        """Durable when it returns. Raises `TypeError` where a state dict holds something else than plain values."""
        name = f"step-{checkpoint.step:09}.pt"
        self._storage.write(name, _to_bytes(checkpoint))
        self._good = [*(known for known in self._good if known != name), name][-KEPT:]
        for other in self._names():
            if other not in self._good:
                self._storage.delete(other)

    def load(self, trial_id: str, replicate: int) -> tuple[Checkpoint | None, tuple[str, ...]]:
        """The newest whole checkpoint of the trial, and a sentence for each newer one that was passed over."""
        notes: list[str] = []
        for name, checkpoint in self._whole(trial_id, replicate, notes):
            self._good = [name]
            return checkpoint, tuple(notes)
        if notes:
            notes.append("no whole checkpoint was left: the training started again")
        return None, tuple(notes)

    def newest_first(self, trial_id: str, replicate: int) -> Iterator[Checkpoint]:
        """The whole checkpoints of the trial, each read when it is asked for."""
        return (checkpoint for _, checkpoint in self._whole(trial_id, replicate, []))

    def _whole(self, trial_id: str, replicate: int, notes: list[str]) -> Iterator[tuple[str, Checkpoint]]:
        """With their names, newest first; `notes` gets a sentence for each one that is passed over."""
        for name in reversed(self._names()):
            try:
                checkpoint = _from_bytes(self._storage.read(name))
            except _UNREADABLE as error:
                notes.append(f"checkpoint {name} could not be read ({_summary(error)}) and was passed over")
                continue
            if (checkpoint.trial_id, checkpoint.replicate) != (trial_id, replicate):
                notes.append(f"checkpoint {name} is of another trial ({checkpoint.trial_id}) and was passed over")
                continue
            yield name, checkpoint

    def _names(self) -> list[str]:
        """Oldest first: by the number of steps."""
        return [name for name in self._storage.names(".pt") if _NAME.fullmatch(name)]


def _to_bytes(checkpoint: Checkpoint) -> bytes:
    content: dict[str, Any] = {"format": FORMAT}
    for entry in fields(checkpoint):
        content[entry.name] = _plain(getattr(checkpoint, entry.name), entry.name)
    buffer = io.BytesIO()
    torch.save(content, buffer)
    return buffer.getvalue()


def _from_bytes(data: bytes) -> Checkpoint:
    content = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
    if content.pop("format") != FORMAT:
        raise ValueError(f"another version wrote it, this one reads format {FORMAT}")
    compilation, precision = content.pop("compilation"), content.pop("precision")
    return Checkpoint(
        curve=LearningCurve(**content.pop("curve")),
        durations=Durations(**content.pop("durations")),
        compilation=None if compilation is None else CompileMeasurement(**compilation),
        precision=None if precision is None else PrecisionMeasurement(**precision),
        **content,
    )


def _plain(value: Any, path: str) -> Any:
    """Only what `torch.load(weights_only=True)` reads back. Raises `TypeError` naming the place of anything else."""
    if value is None or isinstance(value, Tensor) or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, str):
        return str(value)
    if isinstance(value, (LearningCurve, Durations, CompileMeasurement, PrecisionMeasurement)):
        return {entry.name: _plain(getattr(value, entry.name), path) for entry in fields(value)}
    if isinstance(value, Mapping):
        return {key: _plain(item, f"{path}[{key!r}]") for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        items = [_plain(item, f"{path}[{position}]") for position, item in enumerate(value)]
        return tuple(items) if isinstance(value, tuple) else items
    raise TypeError(
        f"a checkpoint holds tensors and plain numbers only, {path} is a {type(value).__module__}."
        f"{type(value).__name__}: give it back as a tensor or a Python number from state_dict"
    )


def _summary(error: Exception) -> str:
    text = str(error).strip()
    return f"{type(error).__name__}: {text.splitlines()[0][:100]}" if text else type(error).__name__
