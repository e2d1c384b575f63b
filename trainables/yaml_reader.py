"""YAML with the line of every value: duplicate keys refused, `3e-4` a number, `off` a word (YAML 1.2's core schema)."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeAlias

import yaml

from trainables.errors import InputError
from trainables.faults import Faults, Place, given

MOST_VALUES = 100_000
"""Values in one file, aliases counted as often as they are used: more is a mistake or an attack."""

DEEPEST = 64
"""Lists and mappings within one another."""

Value: TypeAlias = "str | int | float | bool | tuple[Node, ...] | Mapping[str, Node] | None"


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A value and where it was written; a mapping's value is placed at its key."""

    value: Value
    place: Place
    faulty: bool = False
    """It, or something in it, could not be read, which has been said; the value is None there."""


def read_text(path: str) -> str:
    """The text of a UTF-8 file. Raises `InputError` where there is no such file or it is no text."""
    try:
        data = Path(path).expanduser().read_bytes()
    except IsADirectoryError:
        raise InputError(f"{path}: is a folder, and a YAML file is needed{_yaml_files_in(path)}") from None
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read ({error})") from error
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(
            f"{path}:{line}: byte 0x{data[error.start]:02x} is no UTF-8; save the file as UTF-8 text"
        ) from None


def parse_yaml(text: str, source: str, faults: Faults, *, numbered: bool = True) -> Node | None:
    """The one document in `text`. None where there is none: it is empty or no YAML, which is then a fault.

    Other faults (duplicate keys, unusable numbers and tags) leave the rest readable. Without `numbered`, places name
    the source alone.
    """
    whole = Place(source=source)
    try:
        root = yaml.compose(text, Loader=_CoreLoader)
    except yaml.YAMLError as error:
        line, problem = _syntax_fault(error, text)
        faults.add(Place(source=source, line=line if numbered else None), "", f"is not valid YAML: {problem}")
        return None
    except RecursionError:
        faults.add(whole, "", "is nested too deeply to be read")
        return None
    if root is None:
        faults.add(whole, "", "is empty")
        return None
    reading = _Reading(source, faults, numbered=numbered)
    return reading.node(root, key="", place=reading.place(root), inside=())


def plain(node: Node) -> Any:
    """The value without its places: str, int, float, bool, None, lists and dicts of them."""
    if isinstance(node.value, tuple):
        return [plain(item) for item in node.value]
    if isinstance(node.value, Mapping):
        return {key: plain(item) for key, item in node.value.items()}
    return node.value


def format_yaml(mapping: Mapping[str, Any]) -> str:
    """YAML that `parse_yaml` reads back equal, and that YAML 1.1 readers take for the same values.

    Keys of the mappings directly in `mapping` have a line each; whatever is deeper is written in line where it fits.
    """
    top = {key: _Lines(value) if isinstance(value, Mapping) and value else value for key, value in mapping.items()}
    return yaml.dump(top, Dumper=_Writer, sort_keys=False, default_flow_style=None, allow_unicode=True, width=110)


# The core schema of YAML 1.2 (https://yaml.org/spec/1.2.2/#103-core-schema), apart from numbers with leading zeros.
_TAG = "tag:yaml.org,2002:"
_LEADING_ZERO = "!leading-zero"
_CORE_SCHEMA = (
    (f"{_TAG}null", r"null|Null|NULL|~|"),
    (f"{_TAG}bool", r"true|True|TRUE|false|False|FALSE"),
    (_LEADING_ZERO, r"[-+]?0[0-9]+"),
    (f"{_TAG}int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+"),
    (f"{_TAG}float", r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"),
)


_CORE_RESOLVERS: list[tuple[str, re.Pattern[str]]] = [
    (tag, re.compile(rf"(?:{pattern})\Z")) for tag, pattern in _CORE_SCHEMA
]


class _CoreLoader(yaml.SafeLoader):
    """PyYAML's own schema is YAML 1.1's: `off` a boolean, `3e-4` a text, `1:30` ninety."""

    yaml_implicit_resolvers = {None: _CORE_RESOLVERS}  # noqa: RUF012 (a class attribute of PyYAML)
    depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        """Raises `RecursionError` beyond a depth that is a mistake, whatever the interpreter's own limit is."""
        if self.depth == DEEPEST:
            raise RecursionError
        self.depth += 1
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node


def _represent_text(writer: Any, text: str) -> yaml.Node:
    # Unescaped, some of Unicode's line breaks are read back as another one.
    node: yaml.Node = writer.represent_scalar(f"{_TAG}str", str(text), style=None if text.isprintable() else '"')
    return node


class _Lines(dict[str, Any]):
    """A mapping that is written with a line for each key."""


def _represent_lines(writer: Any, lines: _Lines) -> yaml.Node:
    node: yaml.Node = writer.represent_mapping(f"{_TAG}map", lines, flow_style=False)
    return node


class _Writer(yaml.SafeDumper):
    """Quotes every text that YAML 1.1 or the core schema would take for something else."""

    yaml_implicit_resolvers = {**yaml.SafeDumper.yaml_implicit_resolvers, None: _CORE_RESOLVERS}  # noqa: RUF012 (as above)
    yaml_representers = {**yaml.SafeDumper.yaml_representers, str: _represent_text, _Lines: _represent_lines}  # noqa: RUF012 (as above)
    yaml_multi_representers = {StrEnum: _represent_text}  # noqa: RUF012 (as above)

    def ignore_aliases(self, data: Any) -> bool:
        return True


class _Reading:
    """One document on its way from PyYAML's nodes to ours."""

    def __init__(self, source: str, faults: Faults, *, numbered: bool) -> None:
        self._faults = faults
        self._source = source
        self._numbered = numbered
        self._values = 0

    def place(self, raw: yaml.Node) -> Place:
        return Place(source=self._source, line=raw.start_mark.line + 1 if self._numbered else None)

    def node(self, raw: yaml.Node, *, key: str, place: Place, inside: tuple[yaml.Node, ...]) -> Node:
        """`inside` holds the collections around `raw`: an alias to one of them would never end."""
        self._values += 1
        if self._values > MOST_VALUES:
            raise InputError(f"{self._source}: has more than {MOST_VALUES:,} values")
        if any(raw is outer for outer in inside):
            self._faults.add(place, key, "holds itself, through an alias")
            return Node(value=None, place=place, faulty=True)
        if not isinstance(raw, yaml.ScalarNode) and raw.tag not in (f"{_TAG}map", f"{_TAG}seq"):
            self._faults.add(place, key, _tag_fault(raw.tag))
        if isinstance(raw, yaml.MappingNode):
            entries = self._mapping(raw, key, (*inside, raw))
            return Node(value=entries, place=place, faulty=any(entry.faulty for entry in entries.values()))
        if isinstance(raw, yaml.SequenceNode):
            items = [self.node(item, key=key, place=self.place(item), inside=(*inside, raw)) for item in raw.value]
            return Node(value=tuple(items), place=place, faulty=any(item.faulty for item in items))
        try:
            return Node(value=_scalar_value(raw.tag, str(raw.value)), place=place)
        except ValueError as error:
            self._faults.add(place, key, str(error))
            return Node(value=None, place=place, faulty=True)

    def _mapping(self, raw: yaml.MappingNode, key: str, inside: tuple[yaml.Node, ...]) -> Mapping[str, Node]:
        entries: dict[str, Node] = {}
        for raw_name, raw_value in raw.value:
            place = self.place(raw_name)
            if not isinstance(raw_name, yaml.ScalarNode) or raw_name.tag != f"{_TAG}str" or raw_name.value == "<<":
                shown = raw_name.value if isinstance(raw_name, yaml.ScalarNode) else "a collection"
                self._faults.add(
                    place, key, f"a key must be text (in quotes where it looks otherwise), got {shown or 'nothing'}"
                )
                continue
            name = raw_name.value
            path = f"{key}.{name}" if key else name
            if name in entries:
                first = f", first in line {entries[name].place.line}" if self._numbered else ""
                self._faults.add(place, path, f"is given twice{first}; leave one of them out")
                continue
            entries[name] = self.node(raw_value, key=path, place=place, inside=inside)
        return entries


def _scalar_value(tag: str, text: str) -> str | int | float | bool | None:
    if tag == f"{_TAG}str":
        return _usable_text(text)
    if tag == f"{_TAG}null":
        return None
    if tag == f"{_TAG}bool" and text.lower() in ("true", "false"):
        return text.lower() == "true"
    if tag == _LEADING_ZERO:
        bare = str(int(text))
        raise ValueError(f"{text} is octal to some readers and decimal to others; write {bare}, or '{text}' for text")
    if tag == f"{_TAG}int":
        return _whole_number(text)
    if tag == f"{_TAG}float":
        number = math.inf if text.lower().endswith((".inf", ".nan")) else float(text)
        if not math.isfinite(number):
            raise ValueError(f"must be a finite number, got {text}")
        return number
    raise ValueError(_tag_fault(tag))


def _whole_number(text: str) -> int:
    try:
        return int(text, 0 if text[:2] in ("0o", "0x") else 10)
    except ValueError:
        raise ValueError(f"must be a whole number of sensible length, got {given(text)}") from None


def _tag_fault(tag: str) -> str:
    return f"has the tag {tag.replace(_TAG, '!!')}, and tags are not used here; take it away"


def _usable_text(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("holds half of a surrogate pair, which is no character") from None
    return text


def _syntax_fault(error: yaml.YAMLError, text: str) -> tuple[int | None, str]:
    """Its line and what is wrong there."""
    if isinstance(error, yaml.MarkedYAMLError):
        problem = ", ".join(part for part in (error.context, error.problem) if part)
        advice = " (indent with spaces, not with tabs)" if "'\\t'" in problem else ""
        return error.problem_mark.line + 1 if error.problem_mark else None, problem + advice
    if isinstance(error, yaml.reader.ReaderError):
        line = text.count("\n", 0, error.position) + 1
        return line, f"the character {text[error.position]!r} is not allowed"
    return None, str(error)


def _yaml_files_in(folder: str) -> str:
    names = sorted(path.name for path in Path(folder).expanduser().iterdir() if path.suffix in (".yaml", ".yml"))
    return f"; give one of those in it: {', '.join(names)}" if names else ""
