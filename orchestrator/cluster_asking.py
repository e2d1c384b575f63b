"""Asks every node of a Ray cluster for its facts, each by a task on that node."""

from contextlib import ExitStack
from dataclasses import replace

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from orchestrator.cluster import ray_cluster
from orchestrator.node_asking import LONGEST_SECONDS, NodeAnswer, ask_this_machine
from trainables.node_facts import StorageFacts
from trainables.storage_probe import Token, token_in


def ask_cluster(address: str, storage: StorageFacts) -> list[NodeAnswer]:
    """One answer a living node, in order of their names; `storage` is as the machine that runs the command sees it.

    Raises `InputError` where no Ray answers.
    """
    with ray_cluster(address, sweep_name="doctor"), ExitStack() as resources:
        token = None if storage.fault else resources.enter_context(token_in(storage.location))
        return _ask_nodes(storage.location, token)


def _ask_nodes(location: str, token: Token | None) -> list[NodeAnswer]:
    """All at once. A task asks for no CPU, so that a busy node, or a head without any, answers too."""
    ask = ray.remote(num_cpus=0, max_retries=0)(ask_this_machine)
    waiting = []
    for node in ray.nodes():  # type: ignore[no-untyped-call]
        if node["Alive"]:
            here = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
            name = f"{node['NodeManagerHostname']} ({node['NodeManagerAddress']})"
            task = ask.options(scheduling_strategy=here).remote(name, location, token)  # type: ignore[call-arg]
            waiting.append((name, node["Resources"].get("GPU", 0.0), task))
    answers = [replace(_answer(name, task), node=name, declared_gpus=gpus) for name, gpus, task in waiting]
    return sorted(answers, key=lambda answer: answer.node)


def _answer(name: str, task: "ray.ObjectRef[NodeAnswer]") -> NodeAnswer:
    try:
        answer: NodeAnswer = ray.get(task, timeout=2 * LONGEST_SECONDS)
    except (ray.exceptions.RayError, ray.exceptions.GetTimeoutError) as error:
        return NodeAnswer(node=name, fault=str(error).strip().splitlines()[-1])
    return answer
