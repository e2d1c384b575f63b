"""`--set KEY=VALUE`: values of a search space given on the command line, over those of the file."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from trainables.faults import Faults, Place, given
from trainables.yaml_reader import Node, parse_yaml, plain

LENGTHS = ("epochs", "max_steps")
"""Exactly one of them is given: setting one takes the other away."""


def overridden(root: Node, overrides: Sequence[str], seed: int | None, faults: Faults) -> Node:
    """`root` with the overrides in their order, and the seed; the places of new values name the option."""
    if seed is not None:
        root = _with_value(root, ("seed",), Node(value=seed, place=Place(source="--seed")), faults)
    pairs = [pair for text in overrides if (pair := _pair(text, faults)) is not None]
    tops = {path[0] for path, _ in pairs}
    if isinstance(root.value, Mapping) and len(tops & set(LENGTHS)) == 1:
        root = replace(root, value={key: entry for key, entry in root.value.items() if key not in LENGTHS})
    for path, value in pairs:
        root = _with_value(root, path, value, faults)
    return root


def _pair(text: str, faults: Faults) -> tuple[tuple[str, ...], Node] | None:
    key, equals, written = text.partition("=")
    key = key.strip()
    path = tuple(key.split("."))
    if not equals or not all(path):
        place = Place(source=f"--set {text}")
        faults.add(place, "", "must be KEY=VALUE, such as epochs=2 or knobs.lr=[0.001,0.003]")
        return None
    value = parse_yaml(written, f"--set {key}", faults, numbered=False)
    return None if value is None else (path, value)


def _with_value(node: Node, path: tuple[str, ...], value: Node, faults: Faults, done: str = "") -> Node:
    if not path:
        return value
    key = f"{done}.{path[0]}" if done else path[0]
    if not isinstance(node.value, Mapping):
        faults.add(value.place, "", f"{done or 'the file'} is {given(plain(node))}, which has no keys; set it whole")
        return node
    inner = node.value.get(path[0], Node(value={}, place=value.place))
    return replace(node, value={**node.value, path[0]: _with_value(inner, path[1:], value, faults, key)})
