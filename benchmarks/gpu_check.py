"""Every check of this project that needs a GPU, each part with a time limit of its own; `gpu_check.sh` starts it.

A part that fails or hangs does not stop the others. What there was no time for is in the report as not run.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
ALL_SECONDS = 280
SHORTEST_PART_SECONDS = 15
NO_GPU_EXIT_CODE = 2
ACCURACY_AGREEMENT = 0.01
"""Precisions of one seed must agree so far: a fraction."""

FACTS = """
import json, torch
facts = {"torch": torch.__version__, "cuda": torch.version.cuda, "gpu": None}
if torch.cuda.is_available():
    facts["gpu"] = torch.cuda.get_device_name()
elif torch.accelerator.is_available():
    facts["gpu"] = str(torch.accelerator.current_accelerator())
print(json.dumps(facts))
"""

SPEC = """
model: {model}
dataset: {dataset}
dataset_args: {dataset_args}
epochs: 3
seed: 0
knobs: {{precision: {precision}, batch_size: {batch_size}, compile: '{compile}', lr: 1e-3, num_workers: {num_workers}}}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A finished, failed or timed-out process."""

    seconds: float
    code: int | None
    """None: it was ended at its time limit."""
    output: str

    @property
    def last_line(self) -> str:
        lines = self.output.strip().splitlines()
        return lines[-1] if lines else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    name: str
    fault: str | None
    """None: passed."""
    detail: str = ""


class Stopwatch:
    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    @property
    def left(self) -> float:
        return self._end - time.monotonic()


def run(arguments: list[str], seconds: float) -> Run:
    """Standard output and error together; at the limit the process is killed."""
    started = time.monotonic()
    try:
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        output = error.stdout.decode(errors="replace") if isinstance(error.stdout, bytes) else error.stdout or ""
        return Run(seconds=time.monotonic() - started, code=None, output=output)
    return Run(seconds=time.monotonic() - started, code=done.returncode, output=done.stdout)


def json_of(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def fault_of(finished: Run) -> str | None:
    if finished.code is None:
        return f"was ended after {finished.seconds:.0f} s"
    return None if finished.code == 0 else f"exit code {finished.code}: {finished.last_line[:300]}"


def gpu_tests(folder: Path, watch: Stopwatch) -> Iterator[Check]:
    """The suite's own GPU tests. Only files that hold some are collected: others may need Ray, which may be absent."""
    files = sorted(str(path) for path in (ROOT / "tests").glob("test_*.py") if "mark.gpu" in path.read_text())
    if not files:
        yield Check(name="GPU tests", fault="no test file holds one")
        return
    finished = run(
        ["-m", "pytest", "-o", "addopts=", "-m", "gpu", "-q", "-p", "no:cacheprovider", *files], min(100, watch.left)
    )
    (folder / "pytest.log").write_text(finished.output)
    yield Check(name="GPU tests", fault=fault_of(finished), detail=finished.last_line)


def steps_without_waiting(folder: Path, watch: Stopwatch) -> Iterator[Check]:
    finished = run(["benchmarks/gpu_sync_check.py"], min(60, watch.left))
    (folder / "sync.log").write_text(finished.output)
    yield Check(name="no step waits for the GPU", fault=fault_of(finished), detail=finished.last_line[:300])


def known_delays(folder: Path, watch: Stopwatch) -> Iterator[Check]:
    """The instrument tested on the GPU: a known delay in loader, step, evaluation and compiler."""
    command = ["-m", "orchestrator.doctor", "--self-test", "--json", "--storage", str(folder)]
    finished = run(command, min(75, watch.left))
    (folder / "self_test.log").write_text(finished.output)
    document = next(filter(None, map(json_of, reversed(finished.output.splitlines()))), None)
    tested = document["self_test"] if document else None
    if not tested:
        yield Check(name="known delays", fault=fault_of(finished) or "no self-test in its output")
        return
    yield from (delay_check(check) for check in tested)


def delay_check(check: dict[str, Any]) -> Check:
    """What cannot be tested counts as a fault here: on a GPU all of it can."""
    found = f"{check['measured']} where {check['expected']} is true"
    error = "" if check["error"] is None else f", {100 * check['error']:+.1f} %"
    fault = None if check["passed"] else f"not tested: {check['fault']}" if check["passed"] is None else "wrong"
    return Check(name=f"{check['injected']}: {check['column']}", fault=fault, detail=found + error)


def trial_plan() -> Iterator[tuple[str, str]]:
    """Label and YAML, the ones that matter most first."""
    digits = {"model": "fashion_cnn", "dataset": "digits28", "dataset_args": "{}", "batch_size": 1024, "num_workers": 0}
    for compile_mode in ("off", "default"):
        for precision in ("bf16", "fp16", "fp32", "tf32"):
            text = SPEC.format(**digits, precision=precision, compile=compile_mode)
            yield f"digits28 {precision} compile {compile_mode}", text
        if compile_mode == "off":
            resnet = {
                "model": "resnet18",
                "dataset": "synthetic",
                "dataset_args": "{shape: [3, 224, 224], train_images: 4096, validation_images: 256, num_classes: 10}",
                "batch_size": 256,
                "num_workers": 4,
            }
            yield "synthetic resnet18 bf16", SPEC.format(**resnet, precision="bf16", compile="off")


def trials(folder: Path, watch: Stopwatch) -> Iterator[Check]:
    """One process each, with no Ray; the outcomes go to outcomes.jsonl."""
    outcomes: dict[str, dict[str, Any]] = {}
    for label, text in trial_plan():
        if watch.left < SHORTEST_PART_SECONDS:
            yield Check(name=label, fault="not run: no time was left")
            continue
        spec = folder / "spec.yaml"
        spec.write_text(text)
        finished = run(["-m", "trainables.trial", str(spec)], min(60, watch.left))
        outcome = json_of(finished.last_line)
        fault = fault_of(finished) if outcome is None else outcome_fault(outcome)
        yield Check(name=label, fault=fault or (None if outcome else "no outcome"), detail=outcome_line(outcome))
        if outcome is not None:
            outcomes[label] = outcome
            with (folder / "outcomes.jsonl").open("a") as file:
                file.write(json.dumps(outcome) + "\n")
    yield from agreement(outcomes)


def outcome_fault(outcome: dict[str, Any]) -> str | None:
    """What a completed trial on a GPU must say of itself, and does not."""
    if outcome["status"] != "completed":
        return f"{outcome['status']}: {outcome['status_reason']}"
    asked = outcome["spec"]["config"]
    ran = (outcome["precision"] or {}).get("executed_precision")
    account = outcome["compilation"] or {}
    faults = {
        f"asked for {asked['precision']}, ran {ran}": ran != asked["precision"],
        "ran on the CPU": outcome["device"]["device"] == "cpu",
        "no peak memory": not outcome["peak_memory_bytes"],
        "no throughput": not outcome["throughput"],
        "no count of skipped steps": asked["precision"] == "fp16" and outcome["precision"]["skipped_steps"] is None,
        f"graph breaks: {account.get('graph_breaks')}": bool(account.get("graph_breaks")),
        "no compile seconds": asked["compile"] != "off" and not account.get("compile_seconds"),
    }
    return "; ".join(fault for fault, there in faults.items() if there) or None


def images_per_second(outcome: dict[str, Any]) -> float | None:
    """Median over the windows."""
    windows = outcome["throughput"]
    if not windows:
        return None
    rates = sorted(i / s for i, s in zip(windows["window_images"], windows["window_seconds"], strict=True))
    return float(rates[len(rates) // 2])


def last_accuracy(outcome: dict[str, Any]) -> float | None:
    accuracies = (outcome["curve"] or {}).get("accuracy")
    return accuracies[-1] if accuracies else None


def outcome_line(outcome: dict[str, Any] | None) -> str:
    if outcome is None:
        return ""
    rate, accuracy = images_per_second(outcome), last_accuracy(outcome)
    account = outcome["compilation"] or {}
    parts = [
        f"{rate:,.0f} images/s" if rate else "",
        f"accuracy {accuracy:.4f}" if accuracy is not None else "",
        f"peak {outcome['peak_memory_bytes'] / 2**20:,.0f} MiB" if outcome["peak_memory_bytes"] else "",
        f"compile {account['compile_seconds']:.1f} s" if account.get("compile_seconds") else "",
        f"{outcome['precision']['skipped_steps']} skipped" if (outcome["precision"] or {}).get("skipped_steps") else "",
    ]
    return ", ".join(part for part in parts if part)


def agreement(outcomes: dict[str, dict[str, Any]]) -> Iterator[Check]:
    """Same seed, same data: precisions and compilation may not move the accuracy further than this."""
    scored = {label: last_accuracy(outcome) for label, outcome in outcomes.items()}
    known = [accuracy for accuracy in scored.values() if accuracy is not None]
    if len(known) < 2:
        yield Check(name="accuracies agree", fault="fewer than two accuracies")
        return
    spread = max(known) - min(known)
    fault = None if spread <= ACCURACY_AGREEMENT else f"they differ by {spread:.4f}, more than {ACCURACY_AGREEMENT}"
    yield Check(name="accuracies agree", fault=fault, detail=f"{len(known)} trials within {spread:.4f}")


PARTS: tuple[Callable[[Path, Stopwatch], Iterator[Check]], ...] = (
    gpu_tests,
    steps_without_waiting,
    known_delays,
    trials,
)


def report(facts: dict[str, Any], checks: list[Check], seconds: float) -> str:
    lines = [
        "# GPU checks",
        "",
        f"{facts['gpu']}, torch {facts['torch']}, CUDA {facts['cuda']}; {seconds:.0f} s in all.",
        "",
        "| check | result | detail |",
        "|---|---|---|",
    ]
    for check in checks:
        detail = "; ".join(part for part in (check.fault, check.detail) if part)
        lines.append(f"| {check.name} | {'failed' if check.fault else 'passed'} | {detail.replace('|', '/')} |")
    return "\n".join(lines) + "\n"


def main(folder: Path) -> int:
    watch = Stopwatch(ALL_SECONDS)
    folder.mkdir(parents=True, exist_ok=True)
    facts = json_of(run(["-c", FACTS], 60).last_line)
    if facts is None or facts["gpu"] is None:
        print("gpu_check: no GPU here" if facts else f"gpu_check: {sys.executable} has no torch that works")
        return NO_GPU_EXIT_CODE
    (folder / "outcomes.jsonl").write_text("")
    checks: list[Check] = []
    for part in PARTS:
        for check in part(folder, watch):
            checks.append(check)
            print(
                f"{'FAILED' if check.fault else 'passed'}  {check.name}  {check.fault or ''}  {check.detail}",
                flush=True,
            )
            (folder / "report.md").write_text(report(facts, checks, ALL_SECONDS - watch.left))
    failed = sum(check.fault is not None for check in checks)
    print(f"{len(checks) - failed} passed, {failed} failed; report in {folder / 'report.md'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
