"""Asks a machine for its facts, in a process of its own: a broken driver may hang it or end it."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass

from trainables.node_facts import NodeFacts, node_facts_from_mapping
from trainables.storage_probe import Token

LONGEST_SECONDS = 180
"""Importing torch over a slow network file system and opening 8 GPUs takes a minute at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeAnswer:
    """Facts, or why there are none."""

    node: str
    facts: NodeFacts | None = None
    fault: str | None = None
    declared_gpus: float | None = None
    """GPUs that Ray believes the node to have; None where there is no Ray."""


def ask_this_machine(node: str, storage: str, token: Token | None = None) -> NodeAnswer:
    """`node` is what the machine is called in an answer that has no facts."""
    command = [sys.executable, "-m", "trainables.node_probe", storage]
    command += [token.folder, token.name] if token else []
    try:
        done = subprocess.run(
            command,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LONGEST_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return NodeAnswer(node=node, fault=f"it gave no answer within {LONGEST_SECONDS} s")
    return answer_of(node, done.returncode, done.stdout, done.stderr)


def answer_of(node: str, exit_code: int, output: str, errors: str) -> NodeAnswer:
    """From a finished process: the last line of its output, or else of its errors."""
    try:
        facts = node_facts_from_mapping(json.loads(_last_line(output)))
    except ValueError:
        return NodeAnswer(node=node, fault=f"exit code {exit_code}: {_last_line(errors) or 'it said nothing'}")
    return NodeAnswer(node=facts.node, facts=facts)


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1] if lines else ""
