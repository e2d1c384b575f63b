"""Keyword arguments that a person wrote (`model_args`, `dataset_args`) held to what a function takes."""

import difflib
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from trainables.errors import InputError


def call_with_arguments(
    function: Callable[..., Any],
    arguments: Mapping[str, Any],
    *,
    where: str,
    offered: Mapping[str, Any] | None = None,
    taken_elsewhere: Sequence[str] = (),
) -> Any:
    """Calls `function` with `arguments` and with those of `offered` that its signature accepts.

    Raises `InputError`, naming every wrong argument, before anything is called. `where` begins its messages;
    `taken_elsewhere` are allowed names that the caller has dealt with.
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # a callable of an extension module may have none
        return function(**arguments)
    takes_all = any(entry.kind is entry.VAR_KEYWORD for entry in signature.parameters.values())
    names = [entry.name for entry in signature.parameters.values() if entry.kind in _BY_KEYWORD]
    unknown = [] if takes_all else [name for name in arguments if name not in names]
    if unknown:
        allowed = [name for name in names if name not in (offered or {})] + list(taken_elsewhere)
        raise InputError(*(_unknown_argument(name, allowed, where) for name in unknown))
    extra = {name: value for name, value in (offered or {}).items() if takes_all or name in names}
    every = {**extra, **arguments}
    try:
        signature.bind(**every)
    except TypeError as error:
        raise InputError(f"{where}: {error}; the signature is {signature}") from error
    return function(**every)


_BY_KEYWORD = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def _unknown_argument(name: str, allowed: Sequence[str], where: str) -> str:
    near = difflib.get_close_matches(name, allowed, n=1)
    hint = f"did you mean {near[0]}?" if near else f"allowed are: {', '.join(allowed) or 'none'}"
    return f"{where}: there is no argument {name}; {hint}"


def integer_problem(name: str, value: object, *, at_least: int) -> str | None:
    """What is wrong with a whole number; None where nothing is."""
    if isinstance(value, bool) or not isinstance(value, int):
        return f"{name} must be a whole number, got {value!r}"
    if value < at_least:
        return f"{name} must be at least {at_least}, got {value}"
    return None


def boolean_problem(name: str, value: object) -> str | None:
    return None if isinstance(value, bool) else f"{name} must be true or false, got {value!r}"


def image_size_problem(image_size: object) -> str | None:
    return None if image_size is None else integer_problem("image_size", image_size, at_least=1)


def root_problem(root: object) -> str | None:
    if root is None or (isinstance(root, str) and root):
        return None
    return f"root must be the path of a folder, got {root!r}"


def refuse(where: str, *problems: str | None) -> None:
    """Raises `InputError` with every problem that there is."""
    found = [f"{where}: {problem}" for problem in problems if problem is not None]
    if found:
        raise InputError(*found)
