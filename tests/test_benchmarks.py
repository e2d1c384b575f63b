"""The benchmarks' arithmetic, and what the GPU check asks for and accepts; the measuring itself is theirs."""

import inspect
import random
import subprocess
import sys
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from orchestrator.cluster import ray_cluster
from tests.builders import a_spec, an_outcome
from trainables.measurements import CompileMeasurement, LearningCurve, PrecisionMeasurement
from trainables.outcomes import DeviceFacts, TrialOutcome, TrialStatus, outcome_to_mapping
from trainables.spec_door import spec_from_text
from trainables.specs import CompileMode, Precision
from trainables.synthetic import load_synthetic

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Imports a file of benchmarks/ by its name."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))

    def load(name: str) -> ModuleType:
        return import_module(name)

    return load


def test_every_benchmark_is_listed() -> None:
    listed = (ROOT / "benchmarks" / "README.md").read_text()
    commands = [
        path.name
        for path in (ROOT / "benchmarks").iterdir()
        if path.suffix == ".sh" or (path.suffix == ".py" and "ArgumentParser" in path.read_text())
    ]
    assert len(commands) >= 3
    assert [name for name in commands if f"benchmarks/{name}" not in listed] == []


def test_a_spread_is_the_median_and_the_outer_twentieths(benchmark: Any) -> None:
    spread = benchmark("report_files").spread
    assert spread([float(value) for value in range(21)]) == {"median": 10, "low": 1, "high": 19, "count": 21}
    assert spread([0.5]) == {"median": 0.5, "low": 0.5, "high": 0.5, "count": 1}


def turns(plain: float, again: float, project: float, project_again: float) -> dict[str, Any]:
    """One round of three turns; the first of them, which no ratio takes, took a hundred seconds."""
    seconds = {"plain": plain, "plain again": again, "project": project, "project again": project_again}
    blocks = {name: [100.0, value, value] for name, value in seconds.items()}
    return {
        "steps": 100,
        "train_loss": 0.5,
        "seconds": {name: {"wall_seconds": values, "cpu_seconds": values} for name, values in blocks.items()},
    }


@pytest.mark.parametrize(
    ("most", "slower", "met"), [(1.05, 1.04, True), (1.05, 1.06, False), (None, 1.04, True), (None, 1.3, False)]
)
def test_a_loop_is_judged_by_the_median_ratio_to_its_partner(
    benchmark: Any, most: float | None, slower: float, met: bool
) -> None:
    module = benchmark("loop_overhead")
    rounds = [turns(1.0, 1.1, slower, slower * 1.1)] * 3
    found = module.summary(module.Case(batch_size=32, epochs=1, block_steps=100, most=most), [rounds])
    assert found["wall_seconds"]["project"]["median"] == pytest.approx(slower)
    assert found["wall_seconds"]["control"]["median"] == pytest.approx(1.1)
    assert found["wall_seconds"]["plain_step_microseconds"]["median"] == pytest.approx(10_000)
    assert found["met"] is met


def test_the_two_loops_train_to_the_same_bits(benchmark: Any) -> None:
    module = benchmark("loops")
    images, labels = module.images_in_memory()
    loops = {
        name: loop(images[:128], labels[:128], batch_size=32, epochs=2, block_steps=2)
        for name, loop in module.LOOPS.items()
    }
    measured = benchmark("loop_overhead").in_turn(loops, random.Random(0))
    assert measured["steps"] == 8
    assert {len(seconds["wall_seconds"]) for seconds in measured["seconds"].values()} == {4}


@pytest.mark.parametrize("precision", list(Precision))
@pytest.mark.parametrize("clip_norm", [None, 1.0])
def test_the_check_for_waiting_steps_takes_steps(benchmark: Any, precision: Precision, clip_norm: float | None) -> None:
    """On the CPU, where nothing waits: its own code is what is tested."""
    module = benchmark("gpu_sync_check")
    assert module.waiting_step(precision, clip_norm, device=torch.device("cpu"), steps=2) is None


def test_the_fixed_cost_is_what_a_trials_own_account_leaves_and_the_first_is_apart(benchmark: Any) -> None:
    run = {"interval_seconds": [9.0, 0.5, 0.75], "trial_seconds": [3.0, 0.25, 0.25], "ray_start_seconds": 5.0}
    found = benchmark("trial_cost").summary([run, run])
    assert found["cost_seconds"]["median"] == 0.375
    assert found["run_median_cost_seconds"] == [0.375, 0.375]
    assert (found["cost_seconds"]["count"], found["first_trial_seconds"]["median"]) == (4, 9.0)


def test_the_trials_of_the_gpu_check_are_read(benchmark: Any) -> None:
    specs = {label: spec_from_text(text, source=label) for label, text in benchmark("gpu_check").trial_plan()}
    digits = {(s.config.precision, s.config.compile) for s in specs.values() if s.dataset == "digits28"}
    assert digits == {(p, c) for p in Precision for c in (CompileMode.OFF, CompileMode.DEFAULT)}
    (synthetic,) = (spec for spec in specs.values() if spec.dataset == "synthetic")
    inspect.signature(load_synthetic).bind(**synthetic.dataset_args)


def gpu_outcome(**fields: Any) -> TrialOutcome:
    given: dict[str, Any] = {
        "device": DeviceFacts(device="NVIDIA H200"),
        "peak_memory_bytes": 2**20,
        "precision": PrecisionMeasurement(executed_precision="bf16"),
        "compilation": CompileMeasurement(compile_seconds=3.0, graph_breaks=0),
    }
    spec = a_spec(precision=Precision.BF16, compile=CompileMode.DEFAULT)
    return replace(an_outcome(spec), **(given | fields))


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ({}, None),
        ({"status": TrialStatus.DIVERGED, "status_reason": "loss became NaN"}, "diverged: loss became NaN"),
        ({"precision": PrecisionMeasurement(executed_precision="fp32")}, "asked for bf16, ran fp32"),
        ({"device": DeviceFacts(device="cpu")}, "ran on the CPU"),
        ({"peak_memory_bytes": None, "throughput": None}, "no peak memory; no throughput"),
        ({"compilation": CompileMeasurement(compile_seconds=3.0, graph_breaks=2)}, "graph breaks: 2"),
        ({"compilation": None}, "no compile seconds"),
    ],
)
def test_the_gpu_check_says_what_is_wrong_with_an_outcome(
    benchmark: Any, fields: dict[str, Any], fault: str | None
) -> None:
    assert benchmark("gpu_check").outcome_fault(outcome_to_mapping(gpu_outcome(**fields))) == fault


def reached(accuracy: float) -> dict[str, Any]:
    return outcome_to_mapping(gpu_outcome(curve=LearningCurve(accuracy=(0.5, accuracy))))


def test_precisions_that_disagree_are_found(benchmark: Any) -> None:
    agreement = benchmark("gpu_check").agreement
    outcomes = {str(accuracy): reached(accuracy) for accuracy in (0.98, 0.985)}
    assert [check.fault for check in agreement(outcomes)] == [None]
    far = outcomes | {"far": reached(0.9)}
    assert [check.fault for check in agreement(far)] == ["they differ by 0.0850, more than 0.01"]


@pytest.mark.parametrize(
    ("passed", "error", "fault"), [(True, 0.01, None), (False, 0.5, "wrong"), (None, None, "not tested: no g++")]
)
def test_the_gpu_check_says_of_each_known_delay_whether_it_was_found(
    benchmark: Any, passed: bool | None, error: float | None, fault: str | None
) -> None:
    tested = {"injected": "model: 100 ms", "column": "images_per_second", "measured": 79.2, "expected": 80.0}
    check = benchmark("gpu_check").delay_check(tested | {"passed": passed, "error": error, "fault": "no g++"})
    assert (check.name, check.fault) == ("model: 100 ms: images_per_second", fault)
    assert check.detail.startswith("79.2 where 80.0 is true")


def test_a_part_that_hangs_or_fails_is_told_from_one_that_passes(benchmark: Any) -> None:
    module = benchmark("gpu_check")
    assert module.fault_of(module.run(["-c", "print('good')"], 60)) is None
    assert module.fault_of(module.run(["-c", "import sys; sys.exit('bad')"], 60)) == "exit code 1: bad"
    hung = module.run(["-c", "import time; print('x', flush=True); time.sleep(600)"], 1)
    assert (module.fault_of(hung), hung.output) == ("was ended after 1 s", "x\n")


@pytest.mark.skipif(torch.accelerator.is_available(), reason="there is a GPU")
def test_without_a_gpu_the_gpu_check_says_so(tmp_path: Path) -> None:
    done = subprocess.run(
        [ROOT / "benchmarks" / "gpu_check.sh", tmp_path],
        env={"PYTHON": sys.executable, "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "gpu_check: no GPU here\n")


def rated(reused: float, fresh: float, again: float, *, weights: str = "w", served: int = 1) -> dict[str, Any]:
    """A round of reuse_against_fresh: three rates, the reused trial's weights, and what its process had served."""
    alike = {"accuracy": 0.9, "foreign_cpus": None}
    return {
        "reused": {"images_per_second": reused, "weights": weights, "earlier_trials": served} | alike,
        "fresh": {"images_per_second": fresh, "weights": "w", "earlier_trials": 0} | alike,
        "fresh again": {"images_per_second": again, "weights": "w", "earlier_trials": 0} | alike,
    }


def test_a_reused_process_is_set_against_a_fresh_one_round_by_round(benchmark: Any) -> None:
    module = benchmark("reuse_against_fresh")
    found = module.summary([rated(990, 1000, 1010), rated(1010, 1000, 990), rated(2000, 2000, 2000)])
    assert found["reuse"]["value"] == pytest.approx(1.0, abs=1e-4)
    assert found["reuse"]["half"] == pytest.approx(4.303 * 0.01 / 3**0.5, rel=1e-3)  # Student's t with 2 df
    assert found["control"] == pytest.approx(found["reuse"], rel=1e-9)
    assert not module.is_met(found)  # ±2.5 %
    assert module.is_met(module.summary([rated(999, 1000, 1000), rated(1001, 1000, 1000)] * 4))


@pytest.mark.parametrize(
    "fault",
    [
        [rated(1000, 1000, 1000, weights="others")] * 3,
        [rated(1000, 1000, 1000, served=0)] * 3,
        [rated(1100, 1000, 1000), rated(1101, 1000, 1000), rated(1102, 1000, 1000)],
        [rated(500, 1000, 1000), rated(2000, 1000, 1000)],
    ],
    ids=["other weights", "not reused", "faster", "too wide"],
)
def test_a_reused_process_that_moves_a_number_misses_the_target(benchmark: Any, fault: list[dict[str, Any]]) -> None:
    module = benchmark("reuse_against_fresh")
    assert not module.is_met(module.summary(fault))


@pytest.mark.ray
@pytest.mark.slow
def test_a_trial_is_the_same_to_the_bit_in_a_reused_and_in_a_fresh_process(benchmark: Any, tmp_path: Path) -> None:
    """After a compiled trial, one in fp16, and one with other threads, layout and loader workers."""
    module = benchmark("reuse_against_fresh")
    protocol = module.MeasurementProtocol(epochs=2, windows=1)
    before = [module.predecessor(kind, kind) for kind in module.PREDECESSORS]
    targets = [module.target("reused", protocol, fresh=False), module.target("fresh", protocol, fresh=True)]
    with ray_cluster(None, sweep_name="reuse", num_cpus=2, num_gpus=0) as cluster:
        found = module.run(str(tmp_path), [*before, *targets], cluster.nodes)
    assert [found[name]["earlier_trials"] for name in ("reused", "fresh")] == [3, 0]
    assert found["reused"]["weights"] == found["fresh"]["weights"]
    assert found["reused"]["accuracy"] == found["fresh"]["accuracy"]
