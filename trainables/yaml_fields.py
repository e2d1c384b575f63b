"""One mapping of a YAML file read key by key: what is wrong becomes a fault, and reading goes on."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from trainables.errors import InputError
from trainables.faults import Faults, did_you_mean, given
from trainables.yaml_reader import Node, parse_yaml, plain

T = TypeVar("T")


class Fields:
    """A mapping whose keys are known. Unknown keys are faults at once."""

    def __init__(self, node: Node, *, path: str = "", allowed: Sequence[str], faults: Faults) -> None:
        """`path` is the dotted key of the mapping, empty for the file itself; anything but a mapping is a fault."""
        self.faults = faults
        self.place = node.place
        self._path = path
        self._allowed = allowed
        self._entries: Mapping[str, Node] = node.value if isinstance(node.value, Mapping) else {}
        if not isinstance(node.value, Mapping) and not node.faulty:
            faults.add(node.place, path, f"must be a mapping of {', '.join(allowed)}, got {given(plain(node))}")
        for key, entry in self._entries.items():
            if key not in allowed:
                what = f"there is no such key; there are {', '.join(allowed)}{did_you_mean(key, allowed)}"
                faults.add(entry.place, self.path_of(key), what)

    def path_of(self, key: str) -> str:
        return f"{self._path}.{key}" if self._path else key

    def node(self, key: str) -> Node | None:
        """None where the key is not there."""
        return self._entries.get(key)

    def known(self) -> Iterator[tuple[str, Node]]:
        """The keys that are allowed and there, in the order of the file."""
        yield from ((key, entry) for key, entry in self._entries.items() if key in self._allowed)

    def fault(self, key: str, what: str) -> None:
        """At the key where it is there, else at the mapping."""
        entry = self._entries.get(key)
        self.faults.add(entry.place if entry else self.place, self.path_of(key), what)

    def read(self, key: str, parse: Callable[[Any], T], default: T) -> T:
        """The parsed value; `default` where the key is not there, or its value is refused, which is then a fault."""
        entry = self._entries.get(key)
        return default if entry is None else read_value(entry, self.path_of(key), parse, default, self.faults)

    def items(self, key: str) -> Iterator[Node]:
        """The items of a list; a key that is not there has none, and anything but a list is a fault."""
        entry = self._entries.get(key)
        if entry is not None and isinstance(entry.value, tuple):
            yield from entry.value
        elif entry is not None and not entry.faulty:
            self.fault(key, f"must be a list, got {given(plain(entry))}; write [] for none")


def read_value(node: Node, key: str, parse: Callable[[Any], T], default: T, faults: Faults) -> T:
    """The parsed value of a node; `default` where `parse` raises `ValueError`, whose text is then a fault at `key`."""
    if node.faulty:
        return default
    try:
        return parse(plain(node))
    except ValueError as error:
        faults.add(node.place, key, str(error))
        return default


def read_mapping(text: str, source: str, *, allowed: Sequence[str], faults: Faults) -> Node:
    """The mapping that a whole file is. Raises `InputError` where `text` is none at all."""
    node = parse_yaml(text, source, faults)
    if node is not None and isinstance(node.value, Mapping):
        return node
    if node is not None:
        faults.add(node.place, "", f"must be a mapping of {', '.join(allowed)}, got {given(plain(node))}")
    raise InputError(*faults.messages)
