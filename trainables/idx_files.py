"""Data sets in MNIST's IDX format whose files lie elsewhere than torchvision looks, or are still packed as .gz."""

import gzip
import hashlib
import shutil
import zlib
from collections.abc import Mapping, Sequence
from functools import partial
from io import BufferedReader
from pathlib import Path

from trainables.errors import InputError
from trainables.node_cache import made_once


def found_files(root: Path, class_name: str, names: Sequence[str]) -> dict[str, Path]:
    """Where each of `names` lies, plain or with `.gz`, in torchvision's folder or a folder above it, down to `root`;
    what is nowhere is left out.
    """
    folders = (root / class_name / "raw", root / "raw", root / class_name, root)
    found = {}
    for name in names:
        candidates = [folder / f"{name}{suffix}" for folder in folders for suffix in ("", ".gz")]
        present = next((path for path in candidates if path.is_file()), None)
        if present is not None:
            found[name] = present
    return found


def torchvision_root(root: Path, class_name: str, files: Mapping[str, Path]) -> Path:
    """A root that torchvision reads `files` from: `root` itself where they lie as it expects, else a folder in the
    node's cache that they are unpacked to, once. Raises `InputError` where a .gz file is damaged.
    """
    if all(path == root / class_name / "raw" / name for name, path in files.items()):
        return root
    return made_once(f"{class_name}-{_identity(files)}", partial(_lay_out, class_name, files))


def _identity(files: Mapping[str, Path]) -> str:
    """Of the files at these places: another size or time of change is another file."""
    facts = [(name, str(path.resolve()), path.stat().st_size, path.stat().st_mtime_ns) for name, path in files.items()]
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:16]


def _lay_out(class_name: str, files: Mapping[str, Path], root: Path) -> None:
    folder = root / class_name / "raw"
    folder.mkdir(parents=True)
    for name, source in files.items():
        try:
            with _opened(source) as packed, (folder / name).open("wb") as unpacked:
                shutil.copyfileobj(packed, unpacked)
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise InputError(f"{source}: a damaged .gz file ({error}); fetch it again") from error


def _opened(source: Path) -> gzip.GzipFile | BufferedReader:
    return gzip.open(source) if source.suffix == ".gz" else source.open("rb")
