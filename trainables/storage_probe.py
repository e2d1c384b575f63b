"""Whether a storage can be written from here, has room, and is the same one that another machine sees."""

import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from trainables.node_facts import StorageFacts
from trainables.storage import Storage


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A small object in the storage: a machine that finds it sees the same storage as the one that wrote it."""

    folder: str
    name: str


@contextmanager
def token_in(location: str) -> Iterator[Token]:
    """Deleted at the end. Raises `OSError` where the storage cannot be written."""
    folder = _existing(Storage.open(location))
    token = Token(folder=folder.location, name=_new_name())
    folder.write(token.name, b"doctor")
    try:
        yield token
    finally:
        folder.delete(token.name)


def find_storage_facts(location: str, token: Token | None = None) -> StorageFacts:
    """Writes a small object and deletes it; where the folder is not there yet, in the nearest one above that is.

    Raises `InputError` where `location` names no storage.
    """
    storage = Storage.open(location)
    name = _new_name()
    try:
        shared = None if token is None else Storage.open(token.folder).has(token.name)
        existing = _existing(storage)
        existing.write(name, b"doctor")
        existing.delete(name)
        free = shutil.disk_usage(existing.local_path).free if existing.is_local else None
    except OSError as error:
        return StorageFacts(location=storage.location, fault=str(error) or type(error).__name__)
    return StorageFacts(location=storage.location, free_bytes=free, shared=shared)


def _existing(storage: Storage) -> Storage:
    if not storage.is_local:
        return storage
    path = storage.local_path
    return Storage.open(str(next(folder for folder in (path, *path.parents) if folder.exists())))


def _new_name() -> str:
    return f".doctor-{uuid.uuid4().hex[:8]}"
