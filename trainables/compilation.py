"""`torch.compile` set up for a trial: the compiled callable, a process without earlier code, and a cache of its own."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch
from torch import nn

from trainables.specs import CompileMode

if TYPE_CHECKING:
    from torch._dynamo.callback import CallbackArgs

KEPT_RECORDS = 10_000
"""Of the compiler's records of what it compiled: by its own default it keeps the last 64, too few to count with."""


def compile_model(model: nn.Module, mode: CompileMode) -> Callable[[torch.Tensor], torch.Tensor]:
    """The callable that a training step uses. It shares the weights of `model`, whose names stay free of `_orig_mod.`.

    Shapes are fixed (`dynamic=False`): a training has one batch shape. The compiler is loaded here, which takes a
    process seconds and once, so that its first step does not pay for it.
    """
    if mode is CompileMode.OFF:
        return model
    import torch._inductor.compile_fx

    return torch.compile(model, mode=mode.value, dynamic=False)


def reset_compiler() -> None:
    """Forgets all compiled code, counts and listeners: an earlier trial of the process neither helps nor hurts.

    The compiler's on-disk cache stays: `CompileMeasurement.cache` says whether it was warm.
    """
    if "torch._dynamo" not in sys.modules:  # it takes seconds to load; not loaded, it has nothing to forget
        return
    from torch import _dynamo
    from torch._dynamo.utils import clear_compilation_metrics, counters

    _dynamo.reset()
    clear_compilation_metrics()
    counters.clear()


@contextmanager
def running_eagerly() -> Iterator[None]:
    """Runs uncompiled what a user's own code has compiled, too: hooks see nothing inside compiled code."""
    if "torch._dynamo" not in sys.modules:
        yield
        return
    with torch.compiler.set_stance("force_eager"):
        yield


@contextmanager
def fresh_compile_cache() -> Iterator[None]:
    """Compiled code goes into a folder of its own, empty at first and removed afterwards: the figure is a cold one.

    Inductor's cache, and the one of Triton, which it moves along.
    """
    from torch._inductor.utils import fresh_cache

    cache = fresh_cache()
    cache.__enter__()
    try:
        yield
    finally:
        cache.__exit__(None, None, None)  # told of an exception, it would leave the folder behind


class CompilerWork:
    """How often the compiler compiled code or recorded a CUDA graph: time that is no part of a training's speed."""

    def __init__(self) -> None:
        self._count = 0

    def read(self) -> int:
        return self._count

    def watch(self) -> None:
        """From here until `reset_compiler`; the compiler also keeps its records, which `CompileAccount` reads."""
        from torch._dynamo.callback import callback_handler
        from torch._dynamo.utils import set_compilation_metrics_limit

        set_compilation_metrics_limit(KEPT_RECORDS)
        callback_handler.register_start_callback(self._add)

    def _add(self, event: "CallbackArgs") -> None:
        """A backward pass is compiled in the step of its forward pass, and not counted a second time."""
        from torch._dynamo.callback import CallbackTrigger

        self._count += event.callback_trigger is not CallbackTrigger.LAZY_BACKWARD


def compile_seconds(first_step_seconds: float, typical_step_seconds: float | None) -> float:
    """What the first step took beyond a typical one, not below 0. Without a typical step all of it."""
    return max(0.0, first_step_seconds - (typical_step_seconds or 0.0))
