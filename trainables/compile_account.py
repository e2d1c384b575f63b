"""What the compiler says of itself: graphs, graph breaks, recompilations, its cache, and what it left to Python."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import TYPE_CHECKING

from trainables.measurements import CompileMeasurement
from trainables.specs import CompileMode

if TYPE_CHECKING:
    from torch._dynamo.output_graph import GraphCompileReason
    from torch._dynamo.utils import CompilationMetrics

MOST_REASONS = 10
"""Graph-break reasons, and functions that ran eagerly, kept in an outcome."""

Places = tuple[tuple[str, int | None], ...]
"""File and line of each call that leads to a piece of code, the outermost first."""

_CONTEXT = "Developer debug context: "
_RESUMED = re.compile(r"torch_dynamo_resume_in_(.+)_at_\d+")
"""What the compiler calls the rest of a function after a graph break."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompileAccount:
    """Counted since `compilation.reset_compiler`."""

    graphs: int
    graph_breaks: int
    """Places in the model's code, each once, however often it is run or compiled again."""
    graph_break_reasons: tuple[str, ...]
    recompilations: int
    gave_up: bool
    """Too many recompilations of a function: it runs without the compiler from then on, or wherever it does not fit."""
    eager_functions: tuple[str, ...]
    """Functions that the compiler could not take, or gave up on, with their places."""

    @classmethod
    def now(cls) -> "CompileAccount":
        from torch._dynamo.utils import counters, get_compilation_metrics, graph_break_reasons

        records = get_compilation_metrics()
        breaks = _graph_breaks(graph_break_reasons, records)
        return cls(
            graphs=counters["stats"]["unique_graphs"],
            graph_breaks=len(breaks),
            graph_break_reasons=breaks[:MOST_REASONS],
            recompilations=sum(record.recompile_reason is not None and record.fail_type is None for record in records),
            gave_up=any(map(_is_over_the_limit, records)),
            eager_functions=_eager_functions(records)[:MOST_REASONS],
        )

    def notes(self, mode: CompileMode, device_type: str) -> list[str]:
        """What a reader of a `compile` label must know, because less ran compiled than the label says."""
        notes = []
        if not self.graphs:
            notes.append("torch.compile compiled nothing: the model ran eagerly under the compile label")
        if mode is CompileMode.REDUCE_OVERHEAD and device_type == "cpu":
            notes.append("reduce-overhead works through CUDA graphs: on a CPU it is the default mode")
        return notes


def cache_state() -> str | None:
    """`warm` where the on-disk cache had every graph compiled so far, else `cold`; None where nothing was compiled."""
    from torch._dynamo.utils import counters

    if not counters["stats"]["unique_graphs"]:
        return None
    inductor, autograd = counters["inductor"], counters["aot_autograd"]
    hits = inductor["fxgraph_cache_hit"] + autograd["autograd_cache_hit"]
    missed = inductor["fxgraph_cache_miss"] + inductor["fxgraph_cache_bypass"] + autograd["autograd_cache_miss"]
    return "warm" if hits and not missed else "cold"


def compile_measurement(
    account: CompileAccount,
    *,
    compile_seconds: float | None,
    cache: str | None,
    disturbances_while_timed: int,
    before: CompileMeasurement | None,
) -> CompileMeasurement:
    """`before` is the account of the training in an earlier process, None in its first.

    What the first use cost is what it cost there; recompilations add up.
    """
    now = CompileMeasurement(
        compile_seconds=compile_seconds,
        cache=cache,
        graphs=account.graphs,
        graph_breaks=account.graph_breaks,
        graph_break_reasons=account.graph_break_reasons,
        recompilations=account.recompilations,
        recompilations_while_timed=disturbances_while_timed,
        gave_up=account.gave_up,
        eager_functions=account.eager_functions,
    )
    if before is None:
        return now
    return replace(
        now,
        compile_seconds=before.compile_seconds,
        cache=before.cache,
        recompilations=(before.recompilations or 0) + account.recompilations,
        recompilations_while_timed=(before.recompilations_while_timed or 0) + disturbances_while_timed,
        gave_up=before.gave_up or account.gave_up,
    )


def _graph_breaks(reasons: Iterable["GraphCompileReason"], records: Iterable["CompilationMetrics"]) -> tuple[str, ...]:
    """Each once, though a function is compiled again, and by itself beside the one that calls it.

    A break in a loop leaves no graph to be broken: the whole function fails instead.
    """
    found: dict[tuple[str, Places], str] = {}
    for reason in reasons:
        places = tuple((frame.filename, frame.lineno) for frame in reason.user_stack)
        found.setdefault((_headline(reason.reason), places), _in_one_line(reason.reason, places))
    for record in records:
        text, filename = record.fail_reason, record.fail_user_frame_filename
        if text and filename and not _is_over_the_limit(record):
            places = ((filename, record.fail_user_frame_lineno),)
            found.setdefault((_headline(text), places), _in_one_line(text, places))
    return tuple(
        text for (headline, places), text in found.items() if not _is_seen_from_outside(headline, places, found)
    )


def _is_seen_from_outside(headline: str, places: Places, found: Iterable[tuple[str, Places]]) -> bool:
    """Whether the same break is there with the calls that lead to its function."""
    return any(
        other_headline == headline and len(other) > len(places) and other[len(other) - len(places) :] == places
        for other_headline, other in found
    )


def _eager_functions(records: Iterable["CompilationMetrics"]) -> tuple[str, ...]:
    """The record of a function that is given up does not name it; the earlier ones of its frame do."""
    names: dict[str, str] = {}
    found: dict[str, None] = {}
    for record in records:
        frame = (record.compile_id or "").partition("/")[0]
        if record.co_name and record.co_filename:
            resumed = _RESUMED.fullmatch(record.co_name)
            name = resumed.group(1) if resumed else record.co_name
            names[frame] = f"{name} ({PurePath(record.co_filename).name}:{record.co_firstlineno})"
        if record.fail_type is not None:
            found[names.get(frame, "a function that the compiler did not name")] = None
    return tuple(found)


def _is_over_the_limit(record: "CompilationMetrics") -> bool:
    return "recompile limit" in (record.fail_reason or "").lower()


def _headline(reason: str) -> str:
    return reason.strip().partition("\n")[0].strip()


def _in_one_line(reason: str, places: Places) -> str:
    """The compiler's headline, with the construct in question where it names one, and the line of code."""
    context = [line.strip().removeprefix(_CONTEXT) for line in reason.splitlines() if _CONTEXT in line]
    where = [f"at {PurePath(filename).name}:{line}" for filename, line in places[-1:]]
    return " ".join([_headline(reason), *(f"({text})" for text in context), *where])
