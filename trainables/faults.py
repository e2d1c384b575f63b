"""What is wrong with a person's input, collected with its places so that all of it is said at once."""

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

from trainables.errors import InputError

LONGEST_SHOWN = 60
"""Characters of a given value that a message repeats."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a value was written: a line of a file, or an option of a command."""

    source: str
    """The file as it was given, or for example `--set knobs.lr`."""
    line: int | None = None
    """From 1; None for an option."""

    def __str__(self) -> str:
        return self.source if self.line is None else f"{self.source}:{self.line}"


class Faults:
    """The faults of one input. Reading goes on after a fault; `raise_all` ends it."""

    def __init__(self) -> None:
        self._found: list[tuple[Place, str]] = []

    def add(self, place: Place, key: str, what: str) -> None:
        """`key` is dotted (`knobs.lr`), or empty for the input as a whole."""
        named_by_place = not key or place.source.removeprefix("--set ").removeprefix("--") == key
        self._found.append((place, f"{place}: {what}" if named_by_place else f"{place}: {key}: {what}"))

    def __bool__(self) -> bool:
        return bool(self._found)

    @property
    def messages(self) -> tuple[str, ...]:
        """Each once, by line, source after source."""
        sources = list(dict.fromkeys(place.source for place, _ in self._found))
        ordered = sorted(self._found, key=lambda fault: (sources.index(fault[0].source), fault[0].line or 0))
        return tuple(dict.fromkeys(message for _, message in ordered))

    def raise_all(self) -> None:
        """Raises `InputError` with every fault, where there is one."""
        if self._found:
            raise InputError(*self.messages)


def did_you_mean(word: str, options: Iterable[str]) -> str:
    """`; did you mean 'bf16'?` for the option nearest to `word`, or nothing where none is near."""
    by_lower = {option.lower(): option for option in options}
    near = difflib.get_close_matches(word.lower(), by_lower, n=1, cutoff=0.65)
    return f"; did you mean '{by_lower[near[0]]}'?" if near else ""


def given(value: object) -> str:
    """A value as a message repeats it: in YAML's words, and short."""
    if value is None:
        return "nothing (null)"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return "a list" if value else "an empty list"
    if isinstance(value, dict):
        return "a mapping"
    shown = f"'{value}'" if isinstance(value, str) else repr(value)
    return shown if len(shown) <= LONGEST_SHOWN else f"{shown[:LONGEST_SHOWN]}…"
