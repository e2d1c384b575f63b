"""`torch.compile` in a trial: its account is its own, and its label is never a lie."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.toy_entries import Mlp
from tests.trial_building import (
    checkpoints_in,
    interrupted_hash,
    last_checkpoint,
    run_toy,
    toy_spec,
    trained_hash,
    weights_hash,
)
from trainables.compilation import CompileAccount, compile_model, compile_seconds, in_its_first_process, reset_compiler
from trainables.measurements import CompileMeasurement
from trainables.outcomes import TrialOutcome, TrialStatus
from trainables.specs import CompileMode

EVERY_STEP = {"window_seconds": 1e-6, "window_steps": 1, "windows": 1, "warmup_steps": 2}


def account(**values: Any) -> CompileAccount:
    usual: dict[str, Any] = {
        "graphs": 1,
        "graph_breaks": 0,
        "graph_break_reasons": (),
        "recompilations": 0,
        "cache": None,
        "gave_up": False,
    }
    return CompileAccount(**(usual | values))


def test_compiling_is_what_the_first_step_took_beyond_a_typical_one() -> None:
    assert compile_seconds(9.0, 0.5) == 8.5
    assert compile_seconds(0.4, 0.5) == 0.0
    assert compile_seconds(9.0, None) == 9.0


def test_a_trial_continued_elsewhere_keeps_what_its_first_use_cost() -> None:
    before = CompileMeasurement(compile_seconds=9.0, cache="cold", graph_breaks=1, recompilations=0)
    now = CompileMeasurement(compile_seconds=1.0, cache="warm", graph_breaks=2, recompilations=1)
    kept = in_its_first_process(before, now)
    assert kept == CompileMeasurement(compile_seconds=9.0, cache="cold", graph_breaks=2, recompilations=1)
    assert in_its_first_process(None, now) == now


def test_a_label_that_says_more_than_ran_is_noted() -> None:
    assert account().notes(CompileMode.DEFAULT, "cpu") == []
    assert "compiled nothing" in account(graphs=0).notes(CompileMode.DEFAULT, "cpu")[0]
    assert "gave up" in account(gave_up=True).notes(CompileMode.DEFAULT, "cuda")[0]
    assert "CUDA graphs" in account().notes(CompileMode.REDUCE_OVERHEAD, "cpu")[0]
    assert account().notes(CompileMode.REDUCE_OVERHEAD, "cuda") == []


def test_without_compiling_the_model_itself_is_called() -> None:
    model = Mlp()
    assert compile_model(model, CompileMode.OFF) is model


def test_the_names_of_a_compiled_models_weights_have_no_prefix() -> None:
    """B13"""
    model = Mlp()
    names = list(model.state_dict())
    compile_model(model, CompileMode.DEFAULT)
    assert list(model.state_dict()) == names


def test_forgetting_compiled_code_does_not_load_a_compiler() -> None:
    kept = {name: module for name, module in sys.modules.items() if name.startswith("torch._dynamo")}
    for name in kept:
        del sys.modules[name]
    try:
        reset_compiler()
        assert "torch._dynamo" not in sys.modules
    finally:
        sys.modules.update(kept)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An on-disk cache of the compiler that is the tests' own, empty at first."""
    folder = tmp_path_factory.mktemp("inductor")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("TORCHINDUCTOR_CACHE_DIR", str(folder))
        yield folder


@pytest.fixture(scope="module")
def cold_and_warm(cache: Path) -> tuple[TrialOutcome, TrialOutcome]:
    spec = toy_spec(compile=CompileMode.DEFAULT, dataset_args={"train": 100}, protocol={"epochs": 2} | EVERY_STEP)
    return run_toy(spec), run_toy(spec)


@pytest.mark.slow
def test_whether_the_compilers_cache_was_cold_is_recorded(cold_and_warm: tuple[TrialOutcome, TrialOutcome]) -> None:
    """B02: the second trial of a process or a machine compiles in a tenth of the time."""
    caches = [outcome.compilation.cache for outcome in cold_and_warm if outcome.compilation]
    assert caches == ["cold", "warm"]


@pytest.mark.slow
def test_compiling_is_outside_the_windows_and_in_an_account_of_its_own(
    cold_and_warm: tuple[TrialOutcome, TrialOutcome],
) -> None:
    cold = cold_and_warm[0]
    assert cold.compilation is not None
    assert cold.compilation.compile_seconds is not None
    assert cold.throughput is not None
    assert cold.compilation.compile_seconds > max(cold.throughput.window_seconds)
    assert sum(cold.throughput.window_images) == (2 * 6 - 2) * 16


@pytest.mark.slow
def test_one_graph_serves_the_whole_training(cold_and_warm: tuple[TrialOutcome, TrialOutcome]) -> None:
    """B14: neither a last short batch nor evaluation compiles anything, and switching modes does not either."""
    for outcome in cold_and_warm:
        assert outcome.compilation is not None
        assert (outcome.compilation.recompilations, outcome.compilation.graph_breaks) == (0, 0)
        assert outcome.notes == tuple(note for note in outcome.notes if "compile" not in note)


@pytest.mark.slow
def test_without_dropout_compiled_and_eager_learn_the_same(cold_and_warm: tuple[TrialOutcome, TrialOutcome]) -> None:
    """B17"""
    eager = run_toy(toy_spec(dataset_args={"train": 100}))
    assert eager.curve is not None
    assert cold_and_warm[0].curve is not None
    assert cold_and_warm[0].curve.accuracy == eager.curve.accuracy
    assert cold_and_warm[0].curve.train_loss == pytest.approx(eager.curve.train_loss, rel=1e-4)


@pytest.mark.slow
def test_graph_breaks_are_counted_with_their_reasons(cache: Path) -> None:
    outcome = run_toy(toy_spec("broken", compile=CompileMode.DEFAULT))
    assert outcome.compilation is not None
    assert outcome.compilation.graph_breaks == 1
    assert len(outcome.compilation.graph_break_reasons) == 1
    assert "graph_break()" in outcome.compilation.graph_break_reasons[0]


@pytest.mark.slow
def test_a_model_that_cannot_be_compiled_is_not_called_compiled(cache: Path) -> None:
    outcome = run_toy(toy_spec("uncompilable", compile=CompileMode.DEFAULT))
    assert outcome.status is TrialStatus.COMPLETED
    assert "torch.compile compiled nothing: the model ran eagerly under the compile label" in outcome.notes


@pytest.mark.slow
def test_checkpoints_of_compiled_and_plain_trainings_fit_both(cache: Path, tmp_path: Path) -> None:
    """B13: strict loading in all four directions; an interruption of a compiled training changes no bit."""
    spec = toy_spec(compile=CompileMode.DEFAULT, protocol={"epochs": 2, "report_every_steps": 4})
    through = trained_hash(spec, tmp_path / "compiled")
    assert interrupted_hash(spec, tmp_path / "interrupted", after=1) == through
    eager = toy_spec()
    run_toy(eager, checkpoints=checkpoints_in(tmp_path / "eager"))
    states = [last_checkpoint(spec, tmp_path / "compiled"), last_checkpoint(eager, tmp_path / "eager")]
    for state in states:
        assert not any("_orig_mod" in name for name in state.model)
        for mode in (CompileMode.OFF, CompileMode.DEFAULT):
            model = Mlp()
            compile_model(model, mode)
            model.load_state_dict(state.model, strict=True)
            assert torch.equal(model.first.weight, state.model["first.weight"])
    assert weights_hash(states[0]) == through
