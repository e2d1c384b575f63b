"""What a sweep adds to each of its trials: `python benchmarks/trial_cost.py`.

Trials that train for a moment run one after another in one reused worker of a fresh local Ray: the time from one
outcome to the next, less what the trial itself took by its own account, is the fixed cost. The first trial, whose
worker starts and imports torch, is shown apart. Beside it the same trials run in one process with no Ray.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

from report_files import load_average, machine, machine_lines, shown, spread, write

ROOT = Path(__file__).resolve().parents[1]
LARGEST_COST_SECONDS = 0.15
KINDS = ("sweep", "alone")


def specs(trials: int) -> list[Any]:
    """One epoch of 16 steps each, no measuring on a copy; they differ in lr alone, so one worker serves all."""
    from trainables.specs import CompileMode, MeasurementProtocol, Precision, TrainingConfig, TrialSpec

    return [
        TrialSpec(
            config=TrainingConfig(
                precision=Precision.FP32, batch_size=16, compile=CompileMode.OFF, lr=1e-4 * (1 + number), num_workers=0
            ),
            model="digits_cnn",
            dataset="digits",
            dataset_args={"train_limit": 256, "validation_limit": 64},
            protocol=MeasurementProtocol(epochs=1, windows=0),
        )
        for number in range(trials)
    ]


def sweep(trials: int, folder: str) -> dict[str, Any]:
    """Times of the outcomes' arrivals, from the start of the sweep on a Ray that runs already."""
    from orchestrator.cluster import ray_cluster
    from orchestrator.coordinator import Coordinator
    from orchestrator.ledger import Ledger
    from orchestrator.live import QuietView
    from orchestrator.placement import plan_placement
    from orchestrator.ray_runner import run_on_ray
    from orchestrator.strategy import PlannedStrategy, RetryPolicy

    class Arrivals(QuietView):
        def __init__(self) -> None:
            self.seconds: list[float] = []

        def finished(self, *_: object, **__: object) -> None:
            self.seconds.append(time.perf_counter())

    planned = specs(trials)
    arrivals = Arrivals()
    started = time.perf_counter()
    with ray_cluster(None, sweep_name="trial-cost") as cluster:
        ready = time.perf_counter()
        placement = plan_placement(planned, cluster.nodes)
        ledger = Ledger.create(folder, "trial-cost")
        retries = RetryPolicy()
        coordinator = Coordinator(
            ledger=ledger,
            strategy=PlannedStrategy.of(placement.in_order(planned), retries),
            retries=retries,
            known=(),
            view=arrivals,
            clock=time.monotonic,
        )
        run_on_ray(
            coordinator,
            placement,
            ledger,
            sweep_name="trial-cost",
            trial_timeout_seconds=None,
            should_stop=lambda: False,
        )
    own = {outcome.spec.config.lr: outcome for outcome in ledger.outcomes()}
    found = account([ready, *arrivals.seconds], [own[spec.config.lr] for spec in planned])
    return found | {"ray_start_seconds": ready - started}


def alone(trials: int, folder: str) -> dict[str, Any]:
    """The same trials, checkpoints and all, in this process."""
    from trainables.checkpoints import Checkpoints
    from trainables.storage import Storage
    from trainables.trial import run_trial

    times = [time.perf_counter()]
    outcomes = []
    for spec in specs(trials):
        outcomes.append(run_trial(spec, checkpoints=Checkpoints(Storage.open(folder).folder(spec.trial_id))))
        times.append(time.perf_counter())
    return account(times, outcomes)


def account(times: list[float], outcomes: list[Any]) -> dict[str, Any]:
    """`times` are the start and the arrival of each outcome, in order."""
    assert [outcome.status.value for outcome in outcomes] == ["completed"] * len(outcomes), outcomes
    intervals = [after - before for before, after in pairwise(times)]
    own = [outcome.durations.trial_seconds for outcome in outcomes]
    return {"interval_seconds": intervals, "trial_seconds": own}


def measure(kind: str, trials: int) -> dict[str, Any]:
    """In a process of its own."""
    with tempfile.TemporaryDirectory(prefix="trial-cost-") as folder:
        job = json.dumps({"kind": kind, "trials": trials, "folder": folder})
        command = [sys.executable, __file__, "--work", job]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"the trials ended with exit code {done.returncode}\n{done.stdout}{done.stderr}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def summary(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Of all trials but each run's first."""
    by_run = [list(zip(run["interval_seconds"], run["trial_seconds"], strict=True))[1:] for run in runs]
    pairs = [pair for reused in by_run for pair in reused]
    found: dict[str, Any] = {
        "interval_seconds": spread([interval for interval, _ in pairs]),
        "trial_seconds": spread([own for _, own in pairs]),
        "cost_seconds": spread([interval - own for interval, own in pairs]),
        "first_trial_seconds": spread([run["interval_seconds"][0] for run in runs]),
        "run_median_cost_seconds": sorted(
            spread([interval - own for interval, own in reused])["median"] for reused in by_run
        ),
    }
    if "ray_start_seconds" in runs[0]:
        found["ray_start_seconds"] = spread([run["ray_start_seconds"] for run in runs])
    return found


def lines(facts: dict[str, Any], found: dict[str, dict[str, Any]], runs: int, trials: int) -> list[str]:
    swept, lone = found["sweep"], found["alone"]
    met = "met" if swept["cost_seconds"]["median"] <= LARGEST_COST_SECONDS else "NOT MET"
    rows = (
        ("outcome to outcome", "interval_seconds"),
        ("of it the trial's own", "trial_seconds"),
        ("rest: fixed cost", "cost_seconds"),
    )
    medians = ", ".join(f"{value:.3f}" for value in swept["run_median_cost_seconds"])
    return [
        "# The fixed cost of a trial in a sweep",
        "",
        "Seconds for each trial in a reused worker: median, with the 5th and 95th percentile.",
        "",
        "| | in a sweep on Ray | in one process, no Ray |",
        "|---|---|---|",
        *(f"| {label} | {shown(swept[key])} | {shown(lone[key])} |" for label, key in rows),
        f"| the first trial | {shown(swept['first_trial_seconds'], 1)} | {shown(lone['first_trial_seconds'], 1)} |",
        f"| start of a local Ray | {shown(swept['ray_start_seconds'], 1)} | – |",
        "",
        f"* Target: a fixed cost of at most {LARGEST_COST_SECONDS} s in a sweep, {met}; medians by run {medians}.",
        f"* {runs} runs of each kind in fresh processes, in turn, {trials} trials a run.",
        "* A trial: digits_cnn on 256 digits, one epoch of 16 steps, one evaluation, one checkpoint, no measuring on a",
        "  copy. The fixed cost holds Ray's scheduling and messages, the worker's reset and the durable record.",
        *machine_lines(facts),
        "",
        "Not measured here: GPUs, several machines, object stores, workers that are not reused, and the report at a",
        "sweep's end.",
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3, help="fresh processes of each kind [3]")
    parser.add_argument("--trials", type=int, default=40, help="trials in each [40]")
    parser.add_argument("--output", type=Path, help="folder of the report [benchmarks/results]")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.work:
        sys.path.insert(0, str(ROOT))
        job = json.loads(asked.work)
        print(json.dumps({"sweep": sweep, "alone": alone}[job["kind"]](job["trials"], job["folder"])))
        return 0
    facts = machine()
    measured: dict[str, list[dict[str, Any]]] = {kind: [] for kind in KINDS}
    for number in range(asked.runs):
        for kind in KINDS:
            measured[kind].append(measure(kind, asked.trials))
            print(f"{kind}: run {number + 1} of {asked.runs}", flush=True)
    found = {kind: summary(runs) for kind, runs in measured.items()}
    facts["load_average_at_end"] = load_average()
    text = lines(facts, found, asked.runs, asked.trials)
    folder = {"folder": asked.output} if asked.output else {}
    path = write("trial_cost", text, {"machine": facts, "summary": found, "runs": measured}, **folder)
    print("\n".join(text))
    print(f"\nwritten to {path}")
    return 0 if found["sweep"]["cost_seconds"]["median"] <= LARGEST_COST_SECONDS else 1


if __name__ == "__main__":
    sys.exit(main())
