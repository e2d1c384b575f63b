"""The sweep command as its users run it: another process, a real Ray, real training."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from orchestrator.ledger import Ledger
from trainables.outcomes import TrialOutcome

pytestmark = pytest.mark.ray

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A Ray with 4 GPUs that do not exist and 12 CPUs."""
    from ray.cluster_utils import Cluster

    cluster = Cluster(
        initialize_head=True,
        head_node_args={"num_cpus": 12, "num_gpus": 4, "include_dashboard": False, "object_store_memory": 256 * 2**20},
    )
    yield cluster.address
    cluster.shutdown()


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "orchestrator.sweep", *arguments]


def sweep(*arguments: str, cwd: Path = ROOT, expect: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(command(*arguments), cwd=cwd, env=environment(), capture_output=True, text=True, timeout=280)
    assert done.returncode == expect, f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(ROOT), "COLUMNS": "160"}


def document(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    last: dict[str, Any] = json.loads(done.stdout.splitlines()[-1], parse_constant=pytest.fail)
    return last


def a_space(folder: Path, text: str) -> str:
    path = folder / "space.yaml"
    path.write_text(text)
    return str(path)


DIGITS = """
model: digits_cnn
model_args: {width: 8}
dataset: digits
dataset_args: {train_limit: 512}
epochs: 3
knobs: {precision: fp32, batch_size: 64, compile: false, lr: [1e-3, 2e-3, 3e-3, 4e-3, 5e-3, 6e-3], num_workers: 0}
"""


def by_label(run: Path) -> dict[str, list[TrialOutcome]]:
    found: dict[str, list[TrialOutcome]] = {}
    for outcome in sorted(Ledger.open(str(run)).outcomes(), key=lambda outcome: outcome.attempts):
        found.setdefault(outcome.spec.label, []).append(outcome)
    return found


def records(run: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (run / "outcomes").glob("*.json")}


def wait_until(condition: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    while not condition():
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)


def test_four_trials_at_once_on_four_gpus_end_in_a_whole_run_folder(tmp_path: Path, address: str) -> None:
    space = a_space(tmp_path, DIGITS.replace("[1e-3, 2e-3, 3e-3, 4e-3, 5e-3, 6e-3]", "[1e-3, 2e-3, 3e-3, 4e-3]"))
    done = sweep(space, "--address", address, "--storage", str(tmp_path), "--name", "four", "--json")
    lines = done.stdout.splitlines()
    assert "4 configurations, up to 4 at once, one GPU each (4 in the cluster)" in lines[0]
    assert [line[:11] for line in lines if " start " in line] == ["[0/4] start"] * 4
    run = tmp_path / "four"
    outcomes = [outcome for (outcome,) in by_label(run).values()]
    assert sorted(outcome.placement.accelerator_ids for outcome in outcomes) == [("0",), ("1",), ("2",), ("3",)]
    assert {outcome.placement.neighbours for outcome in outcomes} == {3}
    assert all("torch does not see" in " ".join(outcome.notes) for outcome in outcomes)
    for name in ("space.yaml", "environment.json", "results.csv", "pairs.parquet", "leaderboard.md", "report.html"):
        assert (run / name).stat().st_size > 0
    table = pd.read_parquet(run / "results.parquet")
    assert sorted(table["rank"]) == sorted(row["rank"] for row in document(done)["rankings"][0]["configurations"])
    assert list((run / "checkpoints").iterdir()) == [run / "checkpoints" / document(done)["winner"]["trial_id"]]
    again = sweep(str(run / "best.yaml"), "--plan", "--storage", str(tmp_path))
    assert document(done)["winner"]["trial_id"] in again.stdout


def test_every_ending_is_its_own_outcome_and_the_sweep_goes_on(tmp_path: Path, address: str) -> None:
    space = a_space(
        tmp_path,
        "model: tests.sweep_entries:fateful\ndataset: tests.toy_entries:stripes\nepochs: 3\n"
        "knobs: {precision: fp32, batch_size: [16, 12, 24, 32, 8], compile: false, lr: 1e-2, num_workers: [0, 40]}\n"
        "constraints: [num_workers == 0 or batch_size == 16]\n",
    )
    done = sweep(space, "--address", address, "--storage", str(tmp_path), "--name", "fates", "--max-retries", "1")
    outcomes = {
        (each.spec.config.batch_size, each.spec.config.num_workers): ends
        for ends in by_label(tmp_path / "fates").values()
        for each in ends
    }
    assert {key: [end.status.value for end in ends] for key, ends in outcomes.items()} == {
        (16, 0): ["completed"],
        (16, 40): ["unsupported"],
        (12, 0): ["failed", "failed"],
        (24, 0): ["diverged"],
        (32, 0): ["out_of_memory"],
        (8, 0): ["lost", "lost"],
    }
    reasons = {key: ends[-1].status_reason or "" for key, ends in outcomes.items()}
    assert "no node can hold it: it asks for 1 GPU and 41 CPU on one node" in reasons[16, 40]
    assert "a bug of the model's own" in reasons[12, 0]
    assert "step 5" in reasons[24, 0]
    assert "batch 32" in reasons[32, 0]
    assert "worker process died" in reasons[8, 0]
    for reason in reasons.values():
        assert reason[:40] in " ".join(done.stdout.split())


def test_a_killed_driver_loses_nothing_and_its_run_goes_on(tmp_path: Path, address: str) -> None:
    space = a_space(tmp_path, DIGITS)
    run = tmp_path / "killed"
    arguments = (space, "--address", address, "--storage", str(tmp_path), "--max-concurrent", "2")
    process = subprocess.Popen(
        command(*arguments, "--name", "killed"), cwd=ROOT, env=environment(), stdout=subprocess.PIPE, text=True
    )
    wait_until(lambda: (run / "outcomes").is_dir() and len(records(run)) >= 2, process)
    process.kill()
    process.wait()
    before = records(run)
    assert 2 <= len(before) < 6
    sweep("--resume", str(run), "--address", address)
    after = records(run)
    assert {name: after[name] for name in before} == before
    assert len(after) == 6
    sweep(*arguments, "--name", "undisturbed")
    undisturbed = by_label(tmp_path / "undisturbed")
    assert {label: [o.accuracy for o in ends] for label, ends in by_label(run).items()} == {
        label: [o.accuracy for o in ends] for label, ends in undisturbed.items()
    }


def test_an_interrupted_sweep_reports_and_says_how_to_go_on(tmp_path: Path, address: str) -> None:
    space = a_space(tmp_path, DIGITS)
    run = tmp_path / "stopped"
    process = subprocess.Popen(
        command(space, "--address", address, "--storage", str(tmp_path), "--name", "stopped", "--max-concurrent", "1"),
        cwd=ROOT,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    wait_until(lambda: (run / "outcomes").is_dir() and len(records(run)) >= 1, process)
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 130, output
    assert f"continue with: python -m orchestrator.sweep --resume {run}" in output
    assert "planned trials not run" in output
    assert (run / "report.html").exists()
    assert len(by_label(run)) < 6


def test_an_extension_runs_only_what_is_new(tmp_path: Path, address: str) -> None:
    first = ("--set", "knobs.lr=[0.001]")
    more = ("--set", "knobs.lr=[0.001, 0.002]")
    space = a_space(tmp_path, DIGITS)
    sweep(space, *first, "--address", address, "--storage", str(tmp_path), "--name", "grown")
    run = tmp_path / "grown"
    before = records(run)
    refused = sweep("--resume", str(run), *more, expect=2)
    assert "--extend" in refused.stderr
    sweep("--resume", str(run), *more, "--extend", "--address", address)
    after = records(run)
    assert {name: after[name] for name in before} == before
    assert len(after) == 2


def test_where_everything_fails_the_report_says_so(tmp_path: Path, address: str) -> None:
    space = a_space(
        tmp_path,
        "model: tests.toy_entries:mlp\ndataset: tests.toy_entries:labels_beyond_the_classes\nepochs: 1\n"
        "knobs: {precision: fp32, batch_size: 16, compile: false, lr: [1e-2, 1e-3], num_workers: 0}\n",
    )
    done = sweep(space, "--address", address, "--storage", str(tmp_path), "--name", "bad", "--json", expect=1)
    assert document(done)["winner"] is None
    assert document(done)["statuses"] == {"failed": 2}
    assert "Traceback" not in done.stdout + done.stderr
    assert not (tmp_path / "bad" / "best.yaml").exists()


def test_code_and_data_beside_the_user_are_found_from_any_folder(tmp_path: Path, address: str) -> None:
    package = tmp_path / "userpkg"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "model.py").write_text(
        "from torch import nn\n\n\ndef build(num_classes, input_shape):\n"
        "    c, h, w = input_shape\n    return nn.Sequential(nn.Flatten(), nn.Linear(c * h * w, num_classes))\n"
    )
    (package / "data.py").write_text(
        "import torch\nfrom torch.utils.data import TensorDataset\n\n\ndef load():\n"
        "    n = int(open('data/x.txt').read())\n    y = torch.arange(n) % 2\n"
        "    x = y.view(-1, 1, 1, 1).float().expand(n, 1, 4, 4).contiguous()\n"
        "    return TensorDataset(x, y), TensorDataset(x, y)\n"
    )
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "x.txt").write_text("64")
    space = a_space(
        tmp_path,
        "model: userpkg.model:build\ndataset: userpkg.data:load\nepochs: 1\n"
        "knobs: {precision: fp32, batch_size: 16, compile: false, lr: 1e-2, num_workers: 0}\n",
    )
    done = sweep(space, "--address", address, "--storage", "out", "--name", "user", "--json", cwd=tmp_path)
    assert document(done)["statuses"] == {"completed": 1}
    assert (tmp_path / "out" / "user" / "best.yaml").exists()
    assert not (ROOT / "out").exists()


def test_a_gpu_that_is_required_and_not_there_is_refused(tmp_path: Path) -> None:
    done = sweep("--require-gpu", "--storage", str(tmp_path), expect=2)
    assert "--require-gpu: the cluster has no GPU" in done.stderr
    assert not list(tmp_path.iterdir())


def test_an_address_where_no_ray_answers_is_refused(tmp_path: Path) -> None:
    done = sweep("--address", "127.0.0.1:1", "--storage", str(tmp_path), expect=2)
    assert "--address 127.0.0.1:1: no Ray answered" in done.stderr


def test_the_default_sweep_needs_no_gpu_and_runs_one_trial_at_a_time(tmp_path: Path) -> None:
    settings = ("--set", "knobs.precision=fp32", "--set", "knobs.compile=off", "--set", "knobs.batch_size=64")
    done = sweep(*settings, "--set", "epochs=2", "--storage", str(tmp_path), "--name", "cpu")
    lines = done.stdout.splitlines()
    assert "no GPU in the cluster, so on the CPU, one trial at a time with all" in lines[0]
    assert any(line.startswith("Ray dashboard http://127.0.0.1:") for line in lines)
    (outcomes,) = zip(*by_label(tmp_path / "cpu").values(), strict=True)
    assert [outcome.status.value for outcome in outcomes] == ["completed"] * 4
    assert {outcome.placement.neighbours for outcome in outcomes} == {0}
    assert len({outcome.accuracy for outcome in outcomes if outcome.spec.config.lr == 4e-3}) == 1
