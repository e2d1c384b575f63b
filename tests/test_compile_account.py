"""The compiler's account of itself: graph breaks and recompilations counted once, and what ran eagerly named."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.compile_entries import BreaksInALoop, KnownBreaks
from tests.toy_entries import Mlp
from trainables.compilation import CompilerWork, reset_compiler
from trainables.compile_account import CompileAccount, cache_state, compile_measurement
from trainables.measurements import CompileMeasurement
from trainables.specs import CompileMode

ONE_GRAPH: dict[str, Any] = {
    "graphs": 1,
    "graph_breaks": 0,
    "graph_break_reasons": (),
    "recompilations": 0,
    "gave_up": False,
    "eager_functions": (),
}


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    reset_compiler()
    yield
    reset_compiler()


def images(count: int = 16) -> Tensor:
    return torch.rand(count, 1, 8, 8, generator=torch.Generator().manual_seed(count))


def account_of(model: nn.Module, batches: Sequence[int] = (16, 16, 16)) -> CompileAccount:
    """After a forward and backward pass of every batch size; the graphs are captured, and run without Inductor."""
    forward = torch.compile(model, backend="aot_eager", dynamic=False)
    for count in batches:
        forward(images(count)).sum().backward()
    return CompileAccount.now()


def measured(before: CompileMeasurement | None = None, **account: Any) -> CompileMeasurement:
    return compile_measurement(
        CompileAccount(**(ONE_GRAPH | account)),
        compile_seconds=1.0,
        cache="warm",
        disturbances_while_timed=2,
        before=before,
    )


@pytest.mark.parametrize(
    "breaks", [[], ["break"], ["print"], ["print", "break"], ["break", "break", "print"]], ids=lambda names: len(names)
)
def test_graph_breaks_of_a_model_with_known_ones_are_counted(breaks: list[str]) -> None:
    account = account_of(KnownBreaks(breaks))
    assert account.graph_breaks == len(breaks)
    assert account.graphs > len(breaks)
    assert account.recompilations == 0
    assert account.eager_functions == ()


def test_a_graph_breaks_reason_names_the_construct_and_the_line() -> None:
    reasons = account_of(KnownBreaks(["print", "break"])).graph_break_reasons
    assert reasons[0].startswith("Failed to trace builtin operator (builtin print")
    assert "graph_break()" in reasons[1]
    assert all(reason.rpartition(" at ")[2].startswith("compile_entries.py:") for reason in reasons)


def test_a_graph_break_is_counted_once_however_often_it_is_compiled_again() -> None:
    account = account_of(KnownBreaks(["break"]), batches=(16, 8, 4, 16))
    assert account.graph_breaks == 1
    assert account.recompilations == 6  # three functions that the break leaves, for two further batch sizes


def test_asking_a_tensor_for_its_value_breaks_the_graph_once_and_is_compiled_again_until_the_compiler_gives_up() -> (
    None
):
    few = account_of(KnownBreaks(["item"]), batches=range(16, 19))
    assert few.graph_breaks == 1
    assert "Tensor.item()" in few.graph_break_reasons[0]
    assert not few.gave_up
    reset_compiler()
    many = account_of(KnownBreaks(["item"]), batches=[16, *range(2, 14)])
    assert many.graph_breaks == 1
    assert many.gave_up
    assert [name.partition(" (")[0] for name in many.eager_functions] == ["forward"]


def test_more_recompilations_than_the_compiler_keeps_records_of_by_itself_are_counted() -> None:
    CompilerWork().watch()
    with torch._dynamo.config.patch(recompile_limit=100):
        assert account_of(Mlp(), batches=range(2, 42)).recompilations == 39


def test_a_function_that_the_compiler_cannot_take_is_named_though_others_were_compiled() -> None:
    """A break within a loop leaves no graph that it could break."""
    account = account_of(BreaksInALoop())
    assert account.graph_breaks == 1
    assert account.graphs > 0
    assert [name.partition(" (")[0] for name in account.eager_functions] == ["forward"]
    assert "compile_entries.py:" in account.eager_functions[0]


def test_without_inductor_no_cache_has_anything() -> None:
    assert cache_state() is None
    account_of(Mlp())
    assert cache_state() == "cold"


def test_the_compilers_work_is_counted_while_it_is_watched() -> None:
    work = CompilerWork()
    work.watch()
    account_of(Mlp(), batches=(16, 16, 8, 16))
    assert work.read() == 2
    reset_compiler()
    account_of(Mlp())
    assert work.read() == 2


def test_a_trial_continued_elsewhere_keeps_what_its_first_use_cost_and_adds_its_recompilations() -> None:
    before = CompileMeasurement(
        compile_seconds=9.0, cache="cold", graphs=1, recompilations=3, recompilations_while_timed=1, gave_up=True
    )
    kept = measured(before, graph_breaks=2, recompilations=1)
    assert (kept.compile_seconds, kept.cache) == (9.0, "cold")
    assert (kept.recompilations, kept.recompilations_while_timed) == (4, 3)
    assert kept.gave_up
    assert kept.graph_breaks == 2
    assert measured(None, recompilations=1).recompilations == 1


def test_a_label_that_says_more_than_ran_is_noted() -> None:
    account = CompileAccount(**ONE_GRAPH)
    nothing = CompileAccount(**(ONE_GRAPH | {"graphs": 0}))
    assert account.notes(CompileMode.DEFAULT, "cpu") == []
    assert "compiled nothing" in nothing.notes(CompileMode.DEFAULT, "cpu")[0]
    assert "CUDA graphs" in account.notes(CompileMode.REDUCE_OVERHEAD, "cpu")[0]
    assert account.notes(CompileMode.REDUCE_OVERHEAD, "cuda") == []
