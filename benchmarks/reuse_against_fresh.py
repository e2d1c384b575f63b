"""Does a reused process move a number? `python benchmarks/reuse_against_fresh.py`.

In a sweep on a fresh local Ray one configuration trains again and again: in a process that has just served another
trial (compiled, fp16, or other threads, layout and loader workers), and twice in a fresh process. Its weights must
be the same to the bit; the ratio of the rates, reused over fresh, is set against fresh over fresh.
"""

import argparse
import hashlib
import math
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from report_files import load_average, machine, machine_lines, write

from orchestrator.cluster import ray_cluster
from orchestrator.coordinator import Coordinator
from orchestrator.ledger import Ledger, checkpoint_folder
from orchestrator.live import QuietView
from orchestrator.placement import Node, PlacementPlan, plan_placement
from orchestrator.ray_runner import run_on_ray
from orchestrator.statistics import student_t
from orchestrator.strategy import Pause, RetryPolicy, Segment, SweepState, key_of
from trainables.checkpoints import Checkpoints
from trainables.outcomes import TrialOutcome
from trainables.specs import CompileMode, MeasurementProtocol, Precision, TrainingConfig, TrialSpec
from trainables.throughput import seconds_per_image

WIDEST_HALF_INTERVAL = 0.02
"""As much as processes differ anyhow: a wider interval says nothing."""
KINDS = ("reused", "fresh", "fresh again")
TARGET = TrainingConfig(
    precision=Precision.FP32, batch_size=64, compile=CompileMode.OFF, lr=1e-3, num_workers=0, channels_last=False
)
PREDECESSORS = {
    "compiled": replace(TARGET, compile=CompileMode.DEFAULT, batch_size=32),
    "fp16": replace(TARGET, precision=Precision.FP16, batch_size=128),
    "other threads": replace(TARGET, num_workers=1, channels_last=True),
}
"""What the reused process has served before, round by round."""
SHORT = MeasurementProtocol(epochs=1, windows=0)
"""Of a predecessor, whose speed is not asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """Segments one after another, in their order."""

    segments: tuple[Segment, ...]

    def propose(self, state: SweepState) -> Segment | Pause:
        if state.in_flight:
            return Pause.WAIT
        waiting = (segment for segment in self.segments if key_of(segment.spec) not in state.answered)
        return next(waiting, Pause.DONE)


def spec(config: TrainingConfig, name: str, protocol: MeasurementProtocol, **dataset_args: int) -> TrialSpec:
    """The name gives an identity of its own to a trial that trains to the same weights as others."""
    return TrialSpec(
        config=config,
        model="digits_cnn",
        dataset="digits",
        dataset_args=dataset_args,
        protocol=protocol,
        code_fingerprint=name,
    )


def predecessor(kind: str, name: str) -> Segment:
    return Segment(spec=spec(PREDECESSORS[kind], name, SHORT, train_limit=512))


def target(name: str, protocol: MeasurementProtocol, *, fresh: bool) -> Segment:
    return Segment(spec=spec(TARGET, name, protocol), fresh_process=fresh)


def segments_of(number: int, protocol: MeasurementProtocol, order: random.Random) -> list[Segment]:
    """Of one round. A fresh process ends the reused one, so the predecessor always comes right before."""
    before = predecessor(list(PREDECESSORS)[number % len(PREDECESSORS)], f"{number} before")
    reused, *fresh = (target(f"{number} {kind}", protocol, fresh=kind != "reused") for kind in KINDS)
    blocks = [[before, reused], *([segment] for segment in fresh)]
    order.shuffle(blocks)
    return [segment for block in blocks for segment in block]


def placement_on(nodes: Sequence[Node]) -> PlacementPlan:
    """One request for all, as Ray reuses a process for an equal one only; the trial with workers has more threads."""
    specs = [spec(config, "", SHORT) for config in (TARGET, *PREDECESSORS.values())]
    plan = plan_placement(specs, nodes, most_at_once=1)
    alone = plan.request(TARGET)
    return replace(plan, requests={0: alone, 1: replace(alone, threads=alone.threads + 1)})


def run(folder: str, segments: Sequence[Segment], nodes: Sequence[Node]) -> dict[str, dict[str, Any]]:
    """On the Ray that runs. By its name, of each trial of `TARGET`: its rate, its weights' hash, and its process."""
    ledger = Ledger.create(folder, "reuse")
    retries = RetryPolicy(lost_retries=0, failed_retries=0)
    coordinator = Coordinator(
        ledger=ledger,
        planned=[segment.spec for segment in segments],
        strategy=Listed(segments=tuple(segments)),
        retries=retries,
        known=(),
        view=QuietView(),
        clock=time.monotonic,
    )
    run_on_ray(
        coordinator,
        placement_on(nodes),
        ledger,
        sweep_name="reuse",
        trial_timeout_seconds=None,
        should_stop=lambda: False,
    )
    outcomes = [outcome for outcome in ledger.outcomes() if outcome.spec.config == TARGET]
    return {str(outcome.spec.code_fingerprint): measured(outcome, ledger) for outcome in outcomes}


def sweep(folder: str, protocol: MeasurementProtocol, *, rounds: int, nodes: Sequence[Node]) -> list[dict[str, Any]]:
    """What `run` tells, by round and kind."""
    order = random.Random(0)  # noqa: S311 - an order is no secret
    found = run(folder, [each for number in range(rounds) for each in segments_of(number, protocol, order)], nodes)
    return [{kind: found[f"{number} {kind}"] for kind in KINDS} for number in range(rounds)]


def measured(outcome: TrialOutcome, ledger: Ledger) -> dict[str, Any]:
    seconds = seconds_per_image(outcome.throughput)
    if outcome.status.value != "completed" or seconds is None:
        raise RuntimeError(f"{outcome.spec.code_fingerprint}: {outcome.status}, {outcome.status_reason}")
    folder = ledger.storage.folder(checkpoint_folder(outcome.spec))
    checkpoint, _ = Checkpoints(folder).load(outcome.spec.trial_id, outcome.spec.replicate)
    if checkpoint is None:
        raise RuntimeError(f"{outcome.spec.code_fingerprint}: no checkpoint in {folder.location}")
    parts = [name.encode() + tensor.cpu().numpy().tobytes() for name, tensor in sorted(checkpoint.model.items())]
    return {
        "images_per_second": 1 / seconds,
        "accuracy": outcome.accuracy,
        "weights": hashlib.sha256(b"".join(parts)).hexdigest(),
        "earlier_trials": outcome.placement.earlier_trials,
        "foreign_cpus": outcome.machine.foreign_cpus if outcome.machine else None,
    }


def ratio(rounds: Sequence[dict[str, Any]], after: str, before: str) -> dict[str, float]:
    """Geometric mean over the rounds, with Student's 95 % interval; rounds are pairs, so slow drift cancels."""
    logs = [math.log(entry[after]["images_per_second"] / entry[before]["images_per_second"]) for entry in rounds]
    half = student_t(len(logs) - 1) * statistics.stdev(logs) / math.sqrt(len(logs))
    mean = statistics.fmean(logs)
    return {"value": math.exp(mean), "low": math.exp(mean - half), "high": math.exp(mean + half), "half": half}


def summary(rounds: Sequence[dict[str, Any]]) -> dict[str, Any]:
    trials = [entry[kind] for entry in rounds for kind in KINDS]
    reuse, control = ratio(rounds, "reused", "fresh"), ratio(rounds, "fresh again", "fresh")
    return {
        "rounds": len(rounds),
        "reuse": reuse,
        "control": control,
        "same_weights": len({(trial["weights"], trial["accuracy"]) for trial in trials}) == 1,
        "placed_as_asked": all(
            (entry[kind]["earlier_trials"] == 0) != (kind == "reused") for entry in rounds for kind in KINDS
        ),
        "no_difference": reuse["low"] <= 1 <= reuse["high"],
        "narrow_enough": reuse["half"] <= WIDEST_HALF_INTERVAL,
        "most_foreign_cpus": max((trial["foreign_cpus"] or 0.0 for trial in trials), default=0.0),
    }


def is_met(found: dict[str, Any]) -> bool:
    return all(found[name] for name in ("same_weights", "placed_as_asked", "no_difference", "narrow_enough"))


def lines(facts: dict[str, Any], found: dict[str, Any], epochs: int) -> list[str]:
    def shown(values: dict[str, float]) -> str:
        return f"{values['value']:.4f} [{values['low']:.4f} to {values['high']:.4f}]"

    faults = {
        "same_weights": "weights or accuracies differ",
        "placed_as_asked": "a process was reused or fresh against what was asked",
        "no_difference": "the interval leaves out 1",
        "narrow_enough": f"the interval is wider than ±{WIDEST_HALF_INTERVAL:.0%}",
    }
    wrong = [words for name, words in faults.items() if not found[name]]
    return [
        "# A reused process against a fresh one",
        "",
        "The same trial's rate, as a ratio: geometric mean over the rounds, with its 95 % interval (Student's t over",
        "the rounds' log ratios).",
        "",
        "| reused / fresh | control: fresh / fresh |",
        "|---|---|",
        f"| {shown(found['reuse'])} | {shown(found['control'])} |",
        "",
        f"* Target: the same weights to the bit, and an interval of at most ±{WIDEST_HALF_INTERVAL:.0%} that holds 1: "
        + ("met." if not wrong else f"NOT MET: {'; '.join(wrong)}."),
        "  Of runs without any difference one in twenty misses it by chance.",
        f"* {found['rounds']} rounds of three trials in random order; the reused process had just served, in turn: "
        f"{', '.join(PREDECESSORS)}.",
        f"* The trial: digits_cnn on digits, fp32, batch 64, {epochs} epochs; the rate is the median of its windows.",
        f"* Weights and accuracies of all trials: {'equal to the bit' if found['same_weights'] else 'NOT equal'}.",
        f"* Cores kept busy by others, at most: {found['most_foreign_cpus']:.2f}.",
        *machine_lines(facts),
        "",
        "Not measured here: GPUs, other models, and processes that served more than a few trials.",
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=24, help="rounds of three trials, at least 2 [24]")
    parser.add_argument("--epochs", type=int, default=20, help="epochs of each trial [20]")
    parser.add_argument("--output", type=Path, help="folder of the report [benchmarks/results]")
    asked = parser.parse_args()
    facts = machine()
    with tempfile.TemporaryDirectory(prefix="reuse-") as folder, ray_cluster(None, sweep_name="reuse") as cluster:
        protocol = MeasurementProtocol(epochs=asked.epochs)
        rounds = sweep(folder, protocol, rounds=max(2, asked.rounds), nodes=cluster.nodes)
    found = summary(rounds)
    facts["load_average_at_end"] = load_average()
    text = lines(facts, found, asked.epochs)
    output = {"folder": asked.output} if asked.output else {}
    path = write("reuse_against_fresh", text, {"machine": facts, "summary": found, "rounds": rounds}, **output)
    print("\n".join(text))
    print(f"\nwritten to {path}")
    return 0 if is_met(found) else 1


if __name__ == "__main__":
    sys.exit(main())
