"""Where a search space is read from: a file by its path, or a ready one by its name."""

from collections.abc import Collection
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from trainables.errors import InputError
from trainables.faults import did_you_mean
from trainables.yaml_reader import read_text

DEFAULT_SPACE = "quick"
SUFFIXES = (".yaml", ".yml")


def ready_spaces() -> dict[str, Traversable]:
    """The files of the ready spaces, by their names."""
    found = [entry for entry in files("search_spaces").iterdir() if entry.name.endswith(".yaml")]
    return {entry.name.removesuffix(".yaml"): entry for entry in sorted(found, key=lambda entry: entry.name)}


def find_space(source: str | None) -> tuple[str, str]:
    """The text of a space, and the name that messages give it; None stands for the default space.

    A ready space goes before a file of the same name without a suffix. Raises `InputError` where there is neither.
    """
    ready = ready_spaces()
    name = source or DEFAULT_SPACE
    if name in ready:
        return ready[name].read_text(encoding="utf-8"), f"search_spaces/{ready[name].name}"
    if not Path(name).expanduser().exists():
        raise InputError(_not_found(name, ready))
    return read_text(name), name


def _not_found(name: str, ready: Collection[str]) -> str:
    stem = Path(name).name
    for suffix in SUFFIXES:
        stem = stem.removesuffix(suffix)
    what = "there is no such file" if name.endswith(SUFFIXES) or "/" in name else "there is no such file or ready space"
    return f"{name}: {what}; the ready spaces are {', '.join(ready)}{did_you_mean(stem, ready)}"
