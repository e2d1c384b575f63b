"""What this project's training loop costs over the plainest one by hand: `python benchmarks/loop_overhead.py`.

The same model, data, seed and arithmetic: each comparison first asserts that loss and weights are equal to the bit.
Every round trains by the plain loop twice and by the project's twice, a few hundredths of a second at a time in turn
and in random order, so that other work on the machine hits all four alike. The plain loop against itself (the A/A
control) shows how much of a difference is noise. Rounds are spread over fresh processes.
"""

import argparse
import gc
import json
import os
import random
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from report_files import load_average, machine, machine_lines, shown, spread, write

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    batch_size: int
    epochs: int
    block_steps: int
    """Steps that a loop takes at a time, before another has its turn."""
    most: float | None
    """Largest median ratio of wall times that passes; None: it must lie in the control's spread."""


CASES = (
    Case(batch_size=32, epochs=1, block_steps=16, most=1.05),
    Case(batch_size=512, epochs=2, block_steps=2, most=None),
)
CLOCKS = ("wall_seconds", "cpu_seconds")


def work(case: Case, rounds: int, order_seed: int) -> list[dict[str, Any]]:
    """In a process of its own: the seconds of every loop's blocks, one entry a round."""
    import torch
    from loops import LOOPS, images_in_memory

    from trainables.process_state import keep_freed_memory

    torch.set_num_threads(1)
    keep_freed_memory()  # as in every trial on a CPU: else the heap's state decides which loop pays for page faults
    images, labels = images_in_memory()
    shuffle = random.Random(order_seed)  # noqa: S311 - an order, no secret

    def train() -> dict[str, Any]:
        loops = {
            name: loop(images, labels, batch_size=case.batch_size, epochs=case.epochs, block_steps=case.block_steps)
            for name, loop in LOOPS.items()
        }
        return in_turn(loops, shuffle)

    train()
    measured = []
    for _ in range(rounds):
        gc.collect()
        measured.append(train())
    return measured


def in_turn(loops: dict[str, Any], shuffle: random.Random) -> dict[str, Any]:
    """Trains by all loops, a block each in turn. What they found must be equal to the bit."""
    seconds: dict[str, dict[str, list[float]]] = {name: {clock: [] for clock in CLOCKS} for name in loops}
    found: dict[str, Any] = {}
    while len(found) < len(loops):
        names = list(loops)
        shuffle.shuffle(names)
        for name in names:
            wall, cpu = time.perf_counter(), time.process_time()
            try:
                next(loops[name])
            except StopIteration as end:
                found[name] = end.value
                continue
            seconds[name]["wall_seconds"].append(time.perf_counter() - wall)
            seconds[name]["cpu_seconds"].append(time.process_time() - cpu)
    assert len(set(found.values())) == 1, found
    return {"seconds": seconds, **asdict(found["plain"])}


def measure(case: Case, *, processes: int, rounds: int) -> list[list[dict[str, Any]]]:
    """By process, by round."""
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    measured = []
    for number in range(processes):
        job = json.dumps({"case": asdict(case), "rounds": rounds, "order_seed": number})
        done = subprocess.run(
            [sys.executable, __file__, "--work", job], env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode:
            sys.exit(f"the loops ended with exit code {done.returncode}\n{done.stderr}")
        measured.append(json.loads(done.stdout.splitlines()[-1]))
        print(f"batch {case.batch_size}: process {number + 1} of {processes}", flush=True)
    return measured


def ratios(rounds: list[dict[str, Any]], clock: str) -> dict[str, list[float]]:
    """Each block over its partner, the first of each round left out: project over plain, and plain over plain."""
    found: dict[str, list[float]] = {"project": [], "control": []}
    for entry in rounds:
        blocks = {name: by_clock[clock][1:] for name, by_clock in entry["seconds"].items()}
        for after, before in (("project", "plain"), ("project again", "plain again")):
            found["project"] += [a / b for a, b in zip(blocks[after], blocks[before], strict=True)]
        found["control"] += [a / b for a, b in zip(blocks["plain again"], blocks["plain"], strict=True)]
    return found


def summary(case: Case, measured: list[list[dict[str, Any]]]) -> dict[str, Any]:
    rounds = [entry for process in measured for entry in process]
    found: dict[str, Any] = {
        "batch_size": case.batch_size,
        "epochs": case.epochs,
        "block_steps": case.block_steps,
        "rounds": len(rounds),
    }
    found["steps"] = rounds[0]["steps"]
    found["train_loss"] = rounds[0]["train_loss"]
    for clock in CLOCKS:
        by_kind = ratios(rounds, clock)
        found[clock] = {kind: spread(values) for kind, values in by_kind.items()}
        found[clock]["process_medians"] = sorted(spread(ratios(p, clock)["project"])["median"] for p in measured)
        for name in ("plain", "project"):
            steps = [1e6 * block / case.block_steps for entry in rounds for block in entry["seconds"][name][clock][1:]]
            found[clock][f"{name}_step_microseconds"] = spread(steps)
    wall = found["wall_seconds"]
    highest = case.most if case.most is not None else wall["control"]["high"]
    found["target"] = f"at most {case.most}" if case.most else "within the control's spread"
    found["met"] = wall["project"]["median"] <= highest
    return found


def lines(facts: dict[str, Any], cases: list[dict[str, Any]], processes: int) -> list[str]:
    text = [
        "# The training loop against the plainest one by hand",
        "",
        "Time of this project's loop over that of a loop with nothing in it but batches, loss, backward and optimizer",
        "(`benchmarks/loops.py` holds both). The loops take turns, a few hundredths of a second each; ratios are",
        "medians over all pairs of turns, with the 5th and 95th percentile; the control is the plain loop over itself.",
        "",
        "| batch | clock | project / plain | control: plain / plain | plain, µs a step | project, µs a step |",
        "|---|---|---|---|---|---|",
    ]
    for case in cases:
        for clock in CLOCKS:
            found = case[clock]
            text.append(
                f"| {case['batch_size']} | {clock.partition('_')[0]} | {shown(found['project'])} "
                f"| {shown(found['control'])} | {found['plain_step_microseconds']['median']:.0f} "
                f"| {found['project_step_microseconds']['median']:.0f} |"
            )
    text.append("")
    for case in cases:
        medians = ", ".join(f"{value:.3f}" for value in case["wall_seconds"]["process_medians"])
        text.append(
            f"* Batch {case['batch_size']}: target {case['target']}, {'met' if case['met'] else 'NOT MET'}; medians by "
            f"process {medians}; {case['rounds']} rounds in {processes} processes, {case['steps']} steps a loop, "
            f"{case['block_steps']} a turn."
        )
    return [
        *text,
        "",
        "* Model: 784-128-10 MLP in fp32; data: 8,192 images of 28×28 in memory; fused AdamW; one compute thread.",
        "* All loops run with the trials' own allocator setting: the process keeps freed memory. With glibc's default,",
        "  which loop pays for page faults depends on the state of the heap (up to a tenth of a step).",
        "* Before a time counts, the last epoch's mean loss and the hash of all weights of the four loops of its round",
        "  were compared: equal to the bit.",
        *machine_lines(facts),
        "",
        "Not measured here: GPUs, loader workers, fp16 and bf16, compiled models, and evaluation and checkpoints",
        "(which lie outside the timed windows of a trial).",
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, default=4, help="fresh processes for each batch size [4]")
    parser.add_argument("--rounds", type=int, default=24, help="rounds in each process [24]")
    parser.add_argument("--output", type=Path, help="folder of the report [benchmarks/results]")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.work:
        job = json.loads(asked.work)
        print(json.dumps(work(Case(**job["case"]), job["rounds"], job["order_seed"])))
        return 0
    facts = machine()
    cases = [summary(case, measure(case, processes=asked.processes, rounds=asked.rounds)) for case in CASES]
    facts["load_average_at_end"] = load_average()
    text = lines(facts, cases, asked.processes)
    folder = {"folder": asked.output} if asked.output else {}
    path = write("loop_overhead", text, {"machine": facts, "processes": asked.processes, "cases": cases}, **folder)
    print("\n".join(text))
    print(f"\nwritten to {path}")
    return 0 if all(case["met"] for case in cases) else 1


if __name__ == "__main__":
    sys.exit(main())
