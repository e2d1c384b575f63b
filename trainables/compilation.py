"""`torch.compile` and its own account: what compiling cost and did, kept apart from the training's speed."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import torch
from torch import nn

from trainables.measurements import CompileMeasurement
from trainables.specs import CompileMode

MOST_REASONS = 10
"""Graph-break reasons kept in an outcome."""

_CONTEXT = "Developer debug context: "


def compile_model(model: nn.Module, mode: CompileMode) -> Callable[[torch.Tensor], torch.Tensor]:
    """The callable that a training step uses. It shares the weights of `model`, whose names stay free of `_orig_mod.`.

    Shapes are fixed (`dynamic=False`): a training has one batch shape.
    """
    if mode is CompileMode.OFF:
        return model
    return torch.compile(model, mode=mode.value, dynamic=False)


def reset_compiler() -> None:
    """Forgets all compiled code and all counts, so that an earlier trial of the process neither helps nor hurts.

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


@dataclass(frozen=True, slots=True, kw_only=True)
class CompileAccount:
    """What the compiler says of itself since `reset_compiler`."""

    graphs: int
    graph_breaks: int
    graph_break_reasons: tuple[str, ...]
    recompilations: int
    cache: str | None
    """`warm` where the on-disk cache had every graph, `cold` where it lacked one, None where it was not asked."""
    gave_up: bool
    """Too many recompilations: the function runs without the compiler from then on."""

    @classmethod
    def now(cls) -> "CompileAccount":
        from torch._dynamo.utils import counters, get_compilation_metrics

        breaks = counters["graph_break"]
        hits = counters["inductor"]["fxgraph_cache_hit"] + counters["aot_autograd"]["autograd_cache_hit"]
        misses = counters["inductor"]["fxgraph_cache_miss"] + counters["aot_autograd"]["autograd_cache_miss"]
        metrics = [entry for entry in get_compilation_metrics() if entry.recompile_reason is not None]
        return cls(
            graphs=counters["stats"]["unique_graphs"],
            graph_breaks=sum(breaks.values()),
            graph_break_reasons=tuple(_in_one_line(reason) for reason in list(breaks)[:MOST_REASONS]),
            recompilations=sum(entry.fail_type is None for entry in metrics),
            cache="cold" if misses else "warm" if hits else None,
            gave_up=any("recompile limit" in (entry.fail_reason or "").lower() for entry in metrics),
        )

    def measurement(self, compile_seconds: float | None) -> CompileMeasurement:
        return CompileMeasurement(
            compile_seconds=compile_seconds,
            cache=self.cache,
            graph_breaks=self.graph_breaks,
            graph_break_reasons=self.graph_break_reasons,
            recompilations=self.recompilations,
        )

    def notes(self, mode: CompileMode, device_type: str) -> list[str]:
        """What a reader of a `compile` label must know, because less ran compiled than the label says."""
        notes = []
        if not self.graphs:
            notes.append("torch.compile compiled nothing: the model ran eagerly under the compile label")
        if self.gave_up:
            notes.append("the compiler gave up after too many recompilations: parts of the model ran eagerly")
        if mode is CompileMode.REDUCE_OVERHEAD and device_type == "cpu":
            notes.append("reduce-overhead works through CUDA graphs: on a CPU it is the default mode")
        return notes


def compile_seconds(first_step_seconds: float, typical_step_seconds: float | None) -> float:
    """What the first step took beyond a typical one, not below 0. Without a typical step all of it."""
    return max(0.0, first_step_seconds - (typical_step_seconds or 0.0))


def in_its_first_process(before: CompileMeasurement | None, now: CompileMeasurement) -> CompileMeasurement:
    """The account of a training continued in another process: what the first use cost is what it cost there."""
    if before is None:
        return now
    return replace(now, compile_seconds=before.compile_seconds, cache=before.cache)


def _in_one_line(reason: str) -> str:
    """The compiler's headline, with the construct in question where it names one."""
    lines = [line.strip() for line in reason.splitlines() if line.strip()]
    context = [line.removeprefix(_CONTEXT) for line in lines if line.startswith(_CONTEXT)]
    return " ".join(lines[:1] + [f"({text})" for text in context])
