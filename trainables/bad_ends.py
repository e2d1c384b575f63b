"""Exceptions into bad ends: the closed statuses, each with a sentence that says what happened and what to do."""

import re
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

from trainables.errors import InputError
from trainables.outcomes import TrialStatus
from trainables.specs import TrialSpec

LONGEST_MESSAGE = 500
"""Characters of an exception's own text that a reason repeats."""

_OUT_OF_MEMORY = re.compile(
    r"out of memory|DefaultCPUAllocator: (can't allocate|not enough) memory|ALLOC_FAILED|OUT_OF_(DEVICE|HOST)_MEMORY",
    re.IGNORECASE,
)
"""Device libraries (cuBLAS, cuDNN, Level Zero) and the CPU allocator raise a plain RuntimeError."""
_DEAD_WORKER = re.compile(r"DataLoader worker \(pid.*\) (exited unexpectedly|is killed by signal)", re.DOTALL)
_STUCK_WORKER = re.compile(r"DataLoader timed out after (\d+) seconds")
_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<function>.+)')
_OWN_FOLDER = Path(__file__).parent


class TrialEndedError(Exception):
    """Ends a trial with a status of its own."""

    status: TrialStatus


class UnsupportedError(TrialEndedError):
    status = TrialStatus.UNSUPPORTED


class DivergedError(TrialEndedError):
    status = TrialStatus.DIVERGED


@dataclass(frozen=True, slots=True, kw_only=True)
class BadEnd:
    status: TrialStatus
    reason: str


def bad_end(error: BaseException, spec: TrialSpec) -> BadEnd:
    """What an exception that ended a trial means."""
    if isinstance(error, TrialEndedError):
        return BadEnd(status=error.status, reason=str(error))
    if isinstance(error, InputError):
        return BadEnd(status=TrialStatus.FAILED, reason="; ".join(error.messages))
    if any(is_out_of_memory(link) for link in _chain(error)):
        return BadEnd(status=TrialStatus.OUT_OF_MEMORY, reason=_memory_reason(error, spec))
    return BadEnd(status=TrialStatus.FAILED, reason=_loader_reason(error) or _raised(error))


def is_out_of_memory(error: BaseException) -> bool:
    """Of the device or of the host."""
    if isinstance(error, (torch.OutOfMemoryError, MemoryError)):
        return True
    return isinstance(error, RuntimeError) and _OUT_OF_MEMORY.search(str(error)) is not None


def _memory_reason(error: BaseException, spec: TrialSpec) -> str:
    where = "of the host" if any(isinstance(link, MemoryError) for link in _chain(error)) else ""
    return f"out of memory{' ' * bool(where)}{where} at batch {spec.config.batch_size}: {_message(error)}"


def _loader_reason(error: BaseException) -> str | None:
    text = str(error)
    if _DEAD_WORKER.search(text):
        return (
            "a data loader worker died: most often the memory of the machine, or of /dev/shm in a container, ran out; "
            f"give more of it, or take fewer num_workers ({_message(error)})"
        )
    if stuck := _STUCK_WORKER.search(text):
        return f"data loader timed out: no worker gave a batch for {stuck.group(1)} seconds"
    return None


def _raised(error: BaseException) -> str:
    """Type, message and where in the user's code, also of an exception that a loader worker passed on."""
    in_worker = "DataLoader worker process" in str(error)
    frames = _frames_in_text(str(error)) if in_worker else _frames_of(error)
    own = [frame for frame in frames if _is_user_code(frame[0])]
    chosen = (own or frames)[-1:]
    where = "".join(f" ({Path(file).name}:{line} in {function})" for file, line, function in chosen)
    name = type(error).__name__
    message = _worker_message(error, name) if in_worker else _message(error)
    return f"{name}: {message}{where}" if message else f"{name}{where}"


def _frames_of(error: BaseException) -> list[tuple[str, str, str]]:
    return [(frame.filename, str(frame.lineno), frame.name) for frame in traceback.extract_tb(error.__traceback__)]


def _frames_in_text(text: str) -> list[tuple[str, str, str]]:
    return [(found["file"], found["line"], found["function"].strip()) for found in _FRAME.finditer(text)]


def _is_user_code(file: str) -> bool:
    path = Path(file)
    return "site-packages" not in path.parts and _OWN_FOLDER not in path.parents and not file.startswith("<")


def _worker_message(error: BaseException, name: str) -> str:
    """The last line of the worker's traceback, without the exception's name."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return _shortened(lines[-1].removeprefix(f"{name}: ")) + " (in a data loader worker)"


def _message(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return _shortened(lines[0]) if lines else ""


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST_MESSAGE else f"{text[:LONGEST_MESSAGE]}…"


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The exception and those that caused it: a compiler wraps what the model raised."""
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        yield link
        link = link.__cause__ or link.__context__
