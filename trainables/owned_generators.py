"""Random generators that a data set keeps for itself: found, so that a loader can reseed them for every batch.

Each loader worker has its own copy of such a generator, so that left alone its draws repeat in every worker and every
epoch (global generators do not: torch seeds them in each worker).
"""

import functools
import random
import sys
import types
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import Any

import numpy as np
import torch

from trainables.seeding import Generator

KINDS = (np.random.Generator, np.random.RandomState, random.Random, torch.Generator)
LARGEST_DEPTH = 6
MOST_OBJECTS = 5_000
MOST_ELEMENTS = 100
"""Of one container: transforms are few, file lists are long and hold no generators."""
LIBRARIES = sys.stdlib_module_names | {"PIL", "numpy", "pandas", "pyarrow", "sklearn", "torch", "torchvision"}
LEAVES = (str, bytes, int, float, complex, bool, type(None), type, types.ModuleType, torch.Tensor, np.ndarray)


def owned_generators(dataset: object) -> tuple[Generator, ...]:
    """The generators that `dataset` reaches: in its attributes and its classes', in nested data sets and transforms, in
    the variables that its functions close over or name; always in the same order. Global generators are left out.
    """
    seen = {id(generator) for generator in _global_generators()}
    waiting = deque([(dataset, 0)])
    found: list[Generator] = []
    while waiting and len(seen) < MOST_OBJECTS:
        value, depth = waiting.popleft()
        if id(value) in seen or isinstance(value, LEAVES):
            continue
        seen.add(id(value))
        if isinstance(value, KINDS):
            found.append(value)
        elif depth < LARGEST_DEPTH:
            waiting.extend((part, depth + 1) for part in _parts(value))
    return tuple(found)


def _global_generators() -> Iterator[object]:
    """They are seeded for every batch anyway. numpy's and Python's are the `__self__` of their functions."""
    yield torch.default_generator
    for function in (np.random.rand, random.random):
        if isinstance(function, (types.BuiltinMethodType, types.MethodType)):
            yield function.__self__


def _parts(value: object) -> Iterator[Any]:
    match value:
        case dict():
            yield from islice(value.values(), MOST_ELEMENTS)
        case list() | tuple():
            yield from islice(value, MOST_ELEMENTS)
        case types.FunctionType():
            yield from _parts_of_function(value)
        case types.MethodType():
            yield from (value.__func__, value.__self__)
        case functools.partial():
            yield from (value.func, value.args, value.keywords)
        case staticmethod() | classmethod():
            yield value.__func__
        case property():
            yield value.fget
        case _:
            yield from _parts_of_instance(value)


def _parts_of_function(function: types.FunctionType) -> Iterator[Any]:
    if _is_library(function.__module__):
        return
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # a cell that is not filled yet
            continue
    yield from function.__defaults__ or ()
    yield from (function.__kwdefaults__ or {}).values()
    yield from (function.__globals__[name] for name in function.__code__.co_names if name in function.__globals__)


def _parts_of_instance(value: object) -> Iterator[Any]:
    with suppress(TypeError):  # an object with slots alone, or of a built-in type
        yield from vars(value).values()
    for ancestor in type(value).__mro__:
        if _is_library(ancestor.__module__):
            continue
        for attribute in vars(ancestor).values():
            if isinstance(attribute, types.MemberDescriptorType):
                try:
                    yield attribute.__get__(value)
                except AttributeError:  # a slot that is not filled
                    continue
            else:
                yield attribute


def _is_library(module: str | None) -> bool:
    return (module or "").partition(".")[0] in LIBRARIES
