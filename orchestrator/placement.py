"""What a trial asks of a node, how many fit at once, and what no node can ever hold."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from trainables.specs import TrainingConfig, TrialSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A node of the cluster, or a node type that an autoscaler can start."""

    name: str
    cpus: float
    gpus: float
    how_many: int = 1
    """Of a node type: the most that the autoscaler starts."""
    trial_slots: float = 0
    """Units of the custom resource `trial_slot`; with one on each node, a node runs one exclusive trial."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One trial's resources, all on one node: a bundle for the training process, another for its loader workers."""

    cpus: float
    """Of the training process."""
    gpus: float
    worker_cpus: int
    threads: int = 1
    """Compute threads of the training process, the same for every trial of a sweep."""
    trial_slots: float = 0

    @property
    def bundles(self) -> list[dict[str, float]]:
        """As Ray's placement groups take them; an empty bundle would be refused there."""
        further = {"GPU": self.gpus, "trial_slot": self.trial_slots}
        training = {"CPU": self.cpus} | {name: amount for name, amount in further.items() if amount}
        return [training] + ([{"CPU": float(self.worker_cpus)}] if self.worker_cpus else [])

    @property
    def all_cpus(self) -> float:
        return self.cpus + self.worker_cpus

    def slots(self, node: Node) -> int:
        """How many such trials run on the node (or nodes of the type) at once."""
        by_cpu = math.floor(node.cpus / self.all_cpus)
        by_gpu = math.floor(node.gpus / self.gpus) if self.gpus else by_cpu
        if 0 < self.gpus < 1:
            by_gpu = math.floor(node.gpus) * math.floor(1 / self.gpus)  # Ray never splits a request over two cards
        by_slot = math.floor(node.trial_slots / self.trial_slots) if self.trial_slots else by_cpu
        return node.how_many * min(by_cpu, by_gpu, by_slot)

    def __str__(self) -> str:
        gpus = f"{self.gpus:g} GPU and " if self.gpus else ""
        slots = f" and {self.trial_slots:g} trial_slot" if self.trial_slots else ""
        return f"{gpus}{self.all_cpus:g} CPU{slots} on one node"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementPlan:
    """Where a sweep's trials can run."""

    on_gpu: bool
    requests: Mapping[int, Request]
    """By `num_workers`."""
    unplaceable: Mapping[int, str]
    """By `num_workers`: the sentence that says why no node can hold such a trial."""
    most_at_once: int
    exclusive_note: str | None = None
    """What keeps neighbours away, in words; None where it was not asked for."""

    def request(self, config: TrainingConfig) -> Request:
        return self.requests[config.num_workers]

    def unsupported_reason(self, config: TrainingConfig) -> str | None:
        return self.unplaceable.get(config.num_workers)

    def in_order(self, specs: Sequence[TrialSpec]) -> list[TrialSpec]:
        """Trials with equal requests after one another, since Ray reuses a process only for an equal request.

        Repeats keep their shuffled rounds: what the order is for counts more, and they run in fresh processes anyway.
        """
        order = {request: index for index, request in enumerate(dict.fromkeys(self.requests.values()))}
        placeable = [spec for spec in specs if self.unsupported_reason(spec.config) is None]
        if any(spec.replicate for spec in placeable):
            return placeable
        return sorted(placeable, key=lambda spec: order[self.request(spec.config)])


def plan_placement(
    specs: Sequence[TrialSpec],
    nodes: Sequence[Node],
    *,
    gpus_per_trial: float = 1,
    most_at_once: int | None = None,
    exclusive: bool = False,
) -> PlacementPlan:
    """With GPUs: one each and its loader workers' CPUs. Without: all CPUs of the largest node, one trial at a time.

    `exclusive` gives each trial a node to itself.
    """
    worker_counts = sorted({spec.config.num_workers for spec in specs})
    if not any(node.gpus for node in nodes):
        return _on_cpu(worker_counts, nodes, exclusive=exclusive)
    requests = {count: Request(cpus=1, gpus=gpus_per_trial, worker_cpus=count) for count in worker_counts}
    note = None
    if exclusive:
        requests, note = _with_whole_nodes(requests, [node for node in nodes if node.gpus and node.cpus >= 1])
    slots = {count: sum(request.slots(node) for node in nodes) for count, request in requests.items()}
    unplaceable = {count: _refusal(requests[count], nodes) for count in worker_counts if not slots[count]}
    placeable = {count: requests[count] for count in worker_counts if slots[count]}
    most = max((slots[count] for count in placeable), default=0)
    if placeable and slots[max(placeable)] == most:
        placeable = dict.fromkeys(placeable, placeable[max(placeable)])  # one request for all: one process serves all
    return PlacementPlan(
        on_gpu=True,
        requests=placeable,
        unplaceable=unplaceable,
        most_at_once=min(most, most_at_once) if most_at_once else most,
        exclusive_note=note,
    )


def _on_cpu(worker_counts: Sequence[int], nodes: Sequence[Node], *, exclusive: bool) -> PlacementPlan:
    cpus = max((node.cpus for node in nodes), default=0)
    if cpus < 1:
        reason = "no node of the cluster has a CPU to run it; start nodes that have"
        return PlacementPlan(
            on_gpu=False, requests={}, unplaceable=dict.fromkeys(worker_counts, reason), most_at_once=0
        )
    # loader workers and compute threads that fight for a core make both slower and the rate erratic
    threads = max(1, math.floor(cpus) - max(worker_counts, default=0))
    request = Request(cpus=cpus, gpus=0, worker_cpus=0, threads=threads)
    return PlacementPlan(
        on_gpu=False,
        requests=dict.fromkeys(worker_counts, request),
        unplaceable={},
        most_at_once=1,
        exclusive_note="--exclusive adds nothing to that" if exclusive else None,
    )


def _with_whole_nodes(requests: Mapping[int, Request], nodes: Sequence[Node]) -> tuple[dict[int, Request], str]:
    """The requests made so large that nothing fits beside them, and what keeps neighbours away.

    A request does not know its node. Where each node has one `trial_slot`, that and the CPUs of the smallest node
    are asked for. Else the CPUs of the largest: no smaller request would fill it, so smaller nodes stay unused.
    """
    sizes = [math.floor(node.cpus) for node in nodes] or [1]
    by_slot = bool(nodes) and all(node.trial_slots == 1 for node in nodes)
    cpus = min(sizes) if by_slot else max(sizes)
    whole = {
        count: replace(request, worker_cpus=max(cpus - 1, count), trial_slots=float(by_slot))
        for count, request in requests.items()
    }
    if by_slot:
        return whole, "each alone on its node, by its trial_slot (--exclusive)"
    unused = sum(node.how_many for node in nodes if node.cpus < cpus)
    smaller = (
        f"; GPU nodes with fewer CPUs ({unused}) stay unused, unless every GPU node has the resource trial_slot: 1"
    )
    return whole, f"each alone on its node, of which it reserves all {cpus} CPUs (--exclusive)" + smaller * bool(unused)


def _refusal(request: Request, nodes: Sequence[Node]) -> str:
    have = "; ".join(f"{node.name}: {node.gpus:g} GPU, {node.cpus:g} CPU" for node in nodes[:4])
    more = f"; and {len(nodes) - 4} more" if len(nodes) > 4 else ""
    return (
        f"no node can hold it: it asks for {request} (1 for training, {request.worker_cpus} for num_workers), and the "
        f"cluster has {have}{more}; lower num_workers, or add nodes with more CPUs per GPU"
    )
