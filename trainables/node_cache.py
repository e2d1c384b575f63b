"""Files that a node makes once and keeps: made by one process while the others wait, and never seen half made."""

import fcntl
import os
import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

FOLDER = "sweep-orchestrator"


def made_once(name: str, make: Callable[[Path], None]) -> Path:
    """The file or folder `name` in the node's cache; where it is not there, `make` is given a path to make it at."""
    path = cache_folder() / name
    if path.exists():
        return path
    with locked(name):
        if not path.exists():
            _make(path, make)
    return path


@contextmanager
def locked(name: str) -> Iterator[None]:
    """Inside, no other process of this node (or sharing this cache) is inside for the same name."""
    with (cache_folder() / f".{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # let go when the file is closed, or the process dies
        yield


def cache_folder() -> Path:
    """`$XDG_CACHE_HOME/sweep-orchestrator`, by default under `~/.cache`; a folder of the user's own under the
    temporary folder where that cannot be written.
    """
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(home) / FOLDER
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:  # a container's home may be read-only, or none
        return _temporary_folder()
    return folder if os.access(folder, os.W_OK) else _temporary_folder()


def _temporary_folder() -> Path:
    folder = Path(tempfile.gettempdir(), f"{FOLDER}-{os.getuid()}")
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_uid != os.getuid():
        raise PermissionError(f"{folder} belongs to somebody else; set XDG_CACHE_HOME to a folder that can be written")
    return folder


def _make(path: Path, make: Callable[[Path], None]) -> None:
    for left in path.parent.glob(f".{path.name}.*.tmp"):  # by a process that died; the lock says that none is at work
        _remove(left)
    beside = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.tmp")
    try:
        make(beside)
        beside.rename(path)
    finally:
        _remove(beside)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
