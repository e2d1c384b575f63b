"""The command line `python -m orchestrator.doctor`: what this machine, or a cluster, can run."""

import json
import logging
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from socket import gethostname
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from orchestrator.node_asking import NodeAnswer, ask_this_machine
from orchestrator.node_problems import problems_of, storage_problems
from orchestrator.node_words import node_lines, problem_lines
from orchestrator.problems import Problem
from orchestrator.self_test import ThisProcess, self_test
from orchestrator.self_test_checks import Check
from orchestrator.self_test_words import check_mapping, summary_lines, table_lines
from orchestrator.wording import plain_signs
from trainables.errors import InputError
from trainables.node_facts import node_facts_to_mapping
from trainables.storage_probe import find_storage_facts

WRONG_INPUT_EXIT_CODE = 2
PROBLEM_EXIT_CODE = 1


@click.command(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option("--address", metavar="A", help="Every node of the Ray cluster at this address. Default: this machine.")
@click.option("--storage", default="runs", show_default=True, help="Where runs are to be stored: a folder or a URI.")
@click.option(
    "--self-test",
    "with_self_test",
    is_flag=True,
    help="Train with known delays on this machine, and show that each is measured where it belongs (half a minute).",
)
@click.option("--json", "as_json", is_flag=True, help="The last line of the output is one JSON document.")
def main(address: str | None, storage: str, with_self_test: bool, as_json: bool) -> None:
    """Say what this machine can run: GPUs, precisions, cores, memory, storage, versions.

    Every problem comes with its remedy. Exit code 0: nothing stops a sweep (having no GPU does not); 1: something
    does, or a self-test failed; 2: wrong input.
    """
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s: %(message)s")
    console = Console()
    try:
        answers, problems = _examined(address, storage)
    except InputError as error:
        for message in error.messages:
            click.echo(f"error: {message}", err=True)
        sys.exit(WRONG_INPUT_EXIT_CODE)
    _show([line for answer in answers for line in node_lines(answer)], console)
    _show(problem_lines(problems), console)
    checks = _self_tested(console) if with_self_test and _can_train_here(answers, address) else None
    failed = any(not check.passed and not check.skipped for check in checks or ())
    code = PROBLEM_EXIT_CODE if failed or any(problem.stops for problem in problems) else 0
    if as_json:
        click.echo(json.dumps(_document(answers, problems, checks) | {"exit_code": code}, allow_nan=False))
    sys.exit(code)


def _examined(address: str | None, storage: str) -> tuple[list[NodeAnswer], list[Problem]]:
    if address is None:
        find_storage_facts(storage)  # a location that is none is wrong input
        answers = [ask_this_machine(gethostname(), storage)]
        return answers, problems_of(answers)
    from orchestrator.cluster_asking import ask_cluster  # here: Ray is imported only where it is needed

    here = find_storage_facts(storage)
    answers = ask_cluster(address, here)
    own = [replace(problem, node="where this command runs") for problem in storage_problems(here)]
    return answers, own + problems_of(answers)


def _can_train_here(answers: Sequence[NodeAnswer], address: str | None) -> bool:
    """The nodes of a cluster say nothing of the machine that this command runs on."""
    return address is not None or all(answer.facts and answer.facts.torch for answer in answers)


def _self_tested(console: Console) -> list[Check]:
    checks: list[Check] = []
    _show(table_lines(_kept(self_test(ThisProcess()), checks)), console)
    _show(summary_lines(checks, load=os.getloadavg()[0], cpus=os.cpu_count() or 1), console)
    return checks


def _kept(checks: Iterator[Check], kept: list[Check]) -> Iterator[Check]:
    for check in checks:
        kept.append(check)
        yield check


def _show(lines: Iterable[str], console: Console) -> None:
    for line in lines:
        console.print(Text(line if console.is_terminal else plain_signs(line)), soft_wrap=True)


def _document(
    answers: Sequence[NodeAnswer], problems: Sequence[Problem], checks: Sequence[Check] | None
) -> dict[str, Any]:
    nodes = [
        {
            "node": answer.node,
            "fault": answer.fault,
            "declared_gpus": answer.declared_gpus,
            "facts": node_facts_to_mapping(answer.facts) if answer.facts else None,
        }
        for answer in answers
    ]
    found = [
        {
            "kind": problem.kind.value,
            "node": problem.node,
            "what": problem.what,
            "remedy": problem.remedy,
            "stops": problem.stops,
        }
        for problem in problems
    ]
    tested = None if checks is None else [check_mapping(check) for check in checks]
    return {"nodes": nodes, "problems": found, "self_test": tested}


if __name__ == "__main__":
    main()
