"""What this project's training loop costs over the plainest one by hand: `python benchmarks/loop_overhead.py`.

The same model, data, seed and arithmetic: each comparison first asserts that loss and weights are equal to the bit.
Every round runs the plain loop twice and the project's twice, in random order, so that the plain loop against itself
(the A/A control) shows how much of a difference is noise. Rounds are spread over fresh processes.
"""

import argparse
import gc
import json
import os
import random
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from report_files import load_average, machine, machine_lines, shown, spread, write

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    batch_size: int
    epochs: int
    """So few that a loop takes a fraction of a second: other work on the machine then hits all of a round alike."""
    most: float | None
    """Largest median ratio of wall times that passes; None: it must lie in the control's spread."""


CASES = (Case(batch_size=32, epochs=1, most=1.05), Case(batch_size=512, epochs=2, most=None))
CLOCKS = ("wall_seconds", "cpu_seconds")


def work(case: Case, rounds: int, order_seed: int) -> list[dict[str, Any]]:
    """In a process of its own: the loops' times, one entry a round."""
    import torch
    from loops import LOOPS, images_in_memory

    from trainables.process_state import keep_freed_memory

    torch.set_num_threads(1)
    keep_freed_memory()  # as in every trial on a CPU: else the heap's state decides which loop pays for page faults
    images, labels = images_in_memory()
    shuffle = random.Random(order_seed)  # noqa: S311 - an order, no secret
    for loop in LOOPS.values():
        loop(images, labels, batch_size=case.batch_size, epochs=1)
    measured = []
    for _ in range(rounds):
        names = list(LOOPS)
        shuffle.shuffle(names)
        found = {}
        for name in names:
            gc.collect()
            found[name] = LOOPS[name](images, labels, batch_size=case.batch_size, epochs=case.epochs)
        assert len({(loop.train_loss, loop.weights) for loop in found.values()}) == 1, found
        measured.append({name: asdict(loop) for name, loop in found.items()})
    return measured


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
    """Each of a round's runs over its partner: project over plain, and plain over plain."""
    found: dict[str, list[float]] = {"project": [], "control": []}
    for entry in rounds:
        seconds = {name: loop[clock] for name, loop in entry.items()}
        found["project"].append(seconds["project"] / seconds["plain"])
        found["project"].append(seconds["project again"] / seconds["plain again"])
        found["control"].append(seconds["plain again"] / seconds["plain"])
    return found


def summary(case: Case, measured: list[list[dict[str, Any]]]) -> dict[str, Any]:
    rounds = [entry for process in measured for entry in process]
    found: dict[str, Any] = {"batch_size": case.batch_size, "epochs": case.epochs, "rounds": len(rounds)}
    found["steps"] = rounds[0]["plain"]["steps"]
    found["train_loss"] = rounds[0]["plain"]["train_loss"]
    for clock in CLOCKS:
        by_kind = ratios(rounds, clock)
        found[clock] = {kind: spread(values) for kind, values in by_kind.items()}
        found[clock]["process_medians"] = sorted(spread(ratios(p, clock)["project"])["median"] for p in measured)
        for name in ("plain", "project"):
            steps = [1e6 * entry[name][clock] / found["steps"] for entry in rounds]
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
        "(`benchmarks/loops.py` holds both). Ratios are medians over the pairs of all rounds, with the 5th and 95th",
        "percentile; the control is the plain loop over itself.",
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
            f"process {medians}; {case['rounds']} rounds in {processes} processes, {case['steps']} steps a loop."
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
