"""`torch.compile` in a trial: its account is its own, and its label is never a lie."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner

from tests.toy_entries import Mlp
from tests.trial_building import (
    ONE_THREAD,
    checkpoints_in,
    interrupted_hash,
    last_checkpoint,
    run_toy,
    toy_spec,
    trained_hash,
    weights_hash,
)
from trainables.compilation import compile_model, compile_seconds, fresh_compile_cache, reset_compiler
from trainables.outcomes import TrialOutcome, TrialStatus, outcome_from_mapping
from trainables.spec_door import spec_to_yaml
from trainables.specs import CompileMode, TrialSpec, spec_to_mapping
from trainables.trial import Trial, main, run_trial

EVERY_STEP = {"window_seconds": 1e-6, "window_steps": 1, "windows": 1, "warmup_steps": 2}


def test_compiling_is_what_the_first_step_took_beyond_a_typical_one() -> None:
    assert compile_seconds(9.0, 0.5) == 8.5
    assert compile_seconds(0.4, 0.5) == 0.0
    assert compile_seconds(9.0, None) == 9.0


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


def cache_of(outcome: TrialOutcome) -> str | None:
    return outcome.compilation.cache if outcome.compilation else None


def run_elsewhere(spec: TrialSpec) -> TrialOutcome:
    """In a process of its own, as another actor or the next sweep would."""
    code = (
        "import json, sys\n"
        "from tests.trial_building import run_toy\n"
        "from trainables.outcomes import outcome_to_mapping\n"
        "from trainables.specs import spec_from_mapping\n"
        "print(json.dumps(outcome_to_mapping(run_toy(spec_from_mapping(json.loads(sys.argv[1]))))))\n"
    )
    given = json.dumps(spec_to_mapping(spec))
    done = subprocess.run([sys.executable, "-c", code, given], capture_output=True, text=True, check=True)
    return outcome_from_mapping(json.loads(done.stdout.splitlines()[-1]))


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
    for outcome in cold_and_warm:
        assert outcome.compilation is not None
        assert outcome.compilation.compile_seconds is not None
        assert outcome.throughput is not None
        assert outcome.compilation.compile_seconds > max(outcome.throughput.window_seconds)
        assert sum(outcome.throughput.window_images) == (2 * 6 - 2) * 16


@pytest.mark.slow
def test_one_graph_serves_a_training_with_a_short_last_batch_evaluations_and_a_resumption(
    cache: Path, tmp_path: Path
) -> None:
    """B14: 680 images are ten batches of 64 and a short one, which would be compiled for on its own."""
    spec = toy_spec(
        compile=CompileMode.DEFAULT,
        batch_size=64,
        dataset_args={"train": 680},
        protocol={"epochs": 3, "report_every_steps": 4} | EVERY_STEP,
    )
    with Trial(spec, checkpoints=checkpoints_in(tmp_path), environment=ONE_THREAD) as trial:
        for _ in range(4):
            trial.advance()
    outcome = run_toy(spec, checkpoints=checkpoints_in(tmp_path))
    assert outcome.status is TrialStatus.COMPLETED, outcome.status_reason
    measured = outcome.compilation
    assert measured is not None
    assert (measured.graphs, measured.graph_breaks, measured.recompilations) == (1, 0, 0)
    assert (measured.recompilations_while_timed, measured.gave_up, measured.eager_functions) == (0, False, ())
    assert not any("compile" in note for note in outcome.notes)


@pytest.mark.slow
def test_without_dropout_compiled_and_eager_learn_the_same(cold_and_warm: tuple[TrialOutcome, TrialOutcome]) -> None:
    """B17"""
    eager = run_toy(toy_spec(dataset_args={"train": 100}))
    assert eager.curve is not None
    assert cold_and_warm[0].curve is not None
    assert cold_and_warm[0].curve.accuracy == eager.curve.accuracy
    assert cold_and_warm[0].curve.train_loss == pytest.approx(eager.curve.train_loss, rel=1e-4)


@pytest.mark.slow
def test_a_trial_whose_model_is_compiled_again_and_again_says_so_and_times_none_of_it(cache: Path) -> None:
    spec = toy_spec(compile=CompileMode.DEFAULT, dataset_args={"train": 400}, protocol={"epochs": 1} | EVERY_STEP)
    outcome = run_toy(replace(spec, model="tests.compile_entries:known_breaks", model_args={"breaks": ["item"]}))
    assert outcome.compilation is not None
    assert outcome.throughput is not None
    measured = outcome.compilation
    assert measured.graph_breaks == 1
    assert "Tensor.item()" in measured.graph_break_reasons[0]
    assert measured.gave_up
    assert [name.partition(" (")[0] for name in measured.eager_functions] == ["forward"]
    assert measured.recompilations == 7  # the compiler's limit is 8 versions of a function
    steps, warmup = 25, 2
    dropped = measured.recompilations_while_timed
    assert dropped is not None
    assert 0 < dropped < steps - warmup
    assert len(outcome.throughput.window_images) == steps - warmup - dropped


@pytest.mark.slow
def test_a_warm_cache_serves_another_process_and_a_cold_figure_can_be_forced_in_it(cache: Path) -> None:
    """B02: with a graph break there are several graphs, and a cache that has some of them only is not called warm."""
    spec = toy_spec("broken", compile=CompileMode.DEFAULT, protocol={"epochs": 1})
    cold = replace(ONE_THREAD, cold_compile=True)
    outcomes = [run_toy(spec), run_elsewhere(spec), run_trial(spec, environment=cold), run_toy(spec)]
    measured = [outcome.compilation for outcome in outcomes if outcome.compilation]
    assert [account.cache for account in measured] == ["cold", "warm", "cold", "warm"]
    assert {account.graph_breaks for account in measured} == {1}
    partly = replace(spec, model="tests.compile_entries:broken_with_another_head")
    assert [cache_of(run_toy(partly)), cache_of(run_toy(partly))] == ["cold", "warm"]


@pytest.mark.slow
def test_the_command_of_one_trial_forces_a_cold_figure_where_the_cache_is_warm(cache: Path, tmp_path: Path) -> None:
    spec = toy_spec("broken", compile=CompileMode.DEFAULT, protocol={"epochs": 1})
    run_toy(spec)
    assert cache_of(run_toy(spec)) == "warm"
    (tmp_path / "spec.yaml").write_text(spec_to_yaml(spec))
    asked = [str(tmp_path / "spec.yaml"), "--device", "cpu", "--cpu-threads", "1", "--cold-compile"]
    result = CliRunner().invoke(main, asked)
    assert result.exit_code == 0, result.output
    assert cache_of(outcome_from_mapping(json.loads(result.stdout.splitlines()[-1]))) == "cold"
    assert "(cache cold): 2 graphs, 1 graph breaks, 0 recompilations" in result.stdout


@pytest.mark.slow
def test_a_forced_cold_cache_is_gone_afterwards_whatever_happened(cache: Path) -> None:
    def compile_and_raise() -> None:
        with fresh_compile_cache():
            folders.append(Path(os.environ["TORCHINDUCTOR_CACHE_DIR"]))
            (folders[0] / "code").write_text("compiled")
            assert Path(os.environ["TRITON_CACHE_DIR"]).parent == folders[0]
            raise KeyError

    folders: list[Path] = []
    with pytest.raises(KeyError):
        compile_and_raise()
    assert not folders[0].exists()
    assert os.environ["TORCHINDUCTOR_CACHE_DIR"] == str(cache)
    assert "TRITON_CACHE_DIR" not in os.environ


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
