"""Placement: requests, slots and refusals."""

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.placement import Node, PlacementPlan, Request, plan_placement
from tests.builders import a_spec

GPU_NODE = Node(name="gpu", cpus=12, gpus=4)


def specs(*worker_counts: int) -> list:  # type: ignore[type-arg]
    return [a_spec(num_workers=count) for count in worker_counts]


def test_a_gpu_trial_asks_for_its_gpu_and_its_workers_cpus_in_two_bundles() -> None:
    request = Request(cpus=1, gpus=1, worker_cpus=2)
    assert request.bundles == [{"CPU": 1, "GPU": 1}, {"CPU": 2.0}]


def test_no_bundle_is_ever_empty() -> None:
    assert Request(cpus=1, gpus=1, worker_cpus=0).bundles == [{"CPU": 1, "GPU": 1}]


def test_one_request_serves_all_where_the_cores_allow_it() -> None:
    plan = plan_placement(specs(0, 2), [GPU_NODE])
    assert plan.most_at_once == 4
    assert {plan.request(spec.config) for spec in specs(0, 2)} == {Request(cpus=1, gpus=1, worker_cpus=2)}


def test_trials_go_in_order_of_their_request_where_they_do_not() -> None:
    plan = plan_placement(specs(8, 0, 8, 0), [GPU_NODE])
    assert [spec.config.num_workers for spec in plan.in_order(specs(8, 0, 8, 0))] == [0, 0, 8, 8]
    assert plan.most_at_once == 4


def test_what_no_node_can_hold_is_refused_with_what_the_cluster_has() -> None:
    plan = plan_placement(specs(0, 12), [GPU_NODE, Node(name="cpu", cpus=64, gpus=0)])
    reason = plan.unsupported_reason(specs(12)[0].config)
    assert reason is not None
    assert "1 GPU and 13 CPU on one node" in reason
    assert "gpu: 4 GPU, 12 CPU; cpu: 0 GPU, 64 CPU" in reason
    assert "lower num_workers" in reason
    assert [spec.config.num_workers for spec in plan.in_order(specs(0, 12))] == [0]


def test_without_a_gpu_trials_run_alone_with_all_cores_whatever_their_workers() -> None:
    plan = plan_placement(specs(0, 24), [Node(name="a", cpus=2, gpus=0)], most_at_once=8)
    assert not plan.on_gpu
    assert plan.most_at_once == 1
    assert {plan.request(spec.config) for spec in specs(0, 24)} == {Request(cpus=2, gpus=0, worker_cpus=0, threads=1)}


def test_on_a_cpu_the_cores_beyond_the_loader_workers_compute() -> None:
    plan = plan_placement(specs(0, 2), [Node(name="a", cpus=8, gpus=0)])
    assert [plan.request(spec.config).threads for spec in specs(0, 2)] == [6, 6]


def test_a_fraction_of_a_gpu_never_spans_two_cards() -> None:
    request = Request(cpus=1, gpus=0.4, worker_cpus=0)
    assert request.slots(Node(name="a", cpus=100, gpus=2)) == 4


def test_an_autoscalers_node_type_counts_as_often_as_it_can_be_started() -> None:
    plan = plan_placement(specs(2), [Node(name="head", cpus=0, gpus=0), Node(name="t4", cpus=8, gpus=1, how_many=5)])
    assert plan.most_at_once == 5


def test_a_cluster_without_cpus_is_refused() -> None:
    plan = plan_placement(specs(0), [Node(name="head", cpus=0, gpus=0)])
    assert "no node of the cluster has a CPU" in (plan.unsupported_reason(specs(0)[0].config) or "")


@given(st.lists(st.integers(0, 16), min_size=1, max_size=6), st.integers(1, 32), st.integers(0, 8))
def test_every_trial_is_either_placed_or_refused(counts: list[int], cpus: int, gpus: int) -> None:
    plan = plan_placement(specs(*counts), [Node(name="a", cpus=cpus, gpus=gpus)])
    for count in counts:
        assert (count in plan.requests) != (count in plan.unplaceable)
    placed = plan.in_order(specs(*counts))
    assert len(placed) + sum(count in plan.unplaceable for count in counts) == len(counts)
    assert bool(placed) == (plan.most_at_once > 0)


def exclusive(nodes: list[Node], *counts: int) -> PlacementPlan:
    return plan_placement(specs(*(counts or (2,))), nodes, exclusive=True)


def test_an_exclusive_trial_leaves_no_cpu_of_its_node_to_anybody() -> None:
    plan = exclusive([GPU_NODE, GPU_NODE, Node(name="cpu", cpus=64, gpus=0)], 0, 2, 12)
    assert plan.requests == dict.fromkeys((0, 2), Request(cpus=1, gpus=1, worker_cpus=11))
    assert plan.most_at_once == 2
    assert plan.exclusive_note == "each alone on its node, of which it reserves all 12 CPUs (--exclusive)"
    assert "asks for 1 GPU and 13 CPU on one node" in plan.unplaceable[12]


def test_smaller_nodes_stay_unused_by_exclusive_trials_and_it_is_said() -> None:
    large, small = Node(name="large", cpus=32, gpus=8), Node(name="small", cpus=8, gpus=1, how_many=3)
    plan = exclusive([large, small])
    assert plan.request(specs(2)[0].config).slots(small) == 0
    assert plan.most_at_once == 1
    assert "reserves all 32 CPUs" in (plan.exclusive_note or "")
    assert "GPU nodes with fewer CPUs (3) stay unused" in (plan.exclusive_note or "")


def test_with_a_trial_slot_on_each_node_every_size_runs_one_exclusive_trial() -> None:
    nodes = [Node(name="large", cpus=32, gpus=8, trial_slots=1), Node(name="small", cpus=8, gpus=1, trial_slots=1)]
    plan = exclusive(nodes, 2, 16)
    request = plan.request(specs(2)[0].config)
    assert request.bundles == [{"CPU": 1, "GPU": 1, "trial_slot": 1}, {"CPU": 7}]
    assert str(request) == "1 GPU and 8 CPU and 1 trial_slot on one node"
    assert [request.slots(node) for node in nodes] == [1, 1]
    assert [plan.request(specs(16)[0].config).slots(node) for node in nodes] == [1, 0]
    assert plan.exclusive_note == "each alone on its node, by its trial_slot (--exclusive)"


def test_trial_slots_that_some_node_lacks_are_not_relied_on() -> None:
    nodes = [Node(name="a", cpus=8, gpus=1, trial_slots=1), Node(name="b", cpus=8, gpus=1)]
    assert exclusive(nodes).request(specs(2)[0].config) == Request(cpus=1, gpus=1, worker_cpus=7)
    assert exclusive(nodes).most_at_once == 2


def test_on_the_cpu_exclusive_adds_nothing() -> None:
    nodes = [Node(name="a", cpus=2, gpus=0)]
    plan = exclusive(nodes)
    assert plan.requests == plan_placement(specs(2), nodes).requests
    assert plan.exclusive_note == "--exclusive adds nothing to that"


def test_without_exclusive_nothing_is_said_of_it() -> None:
    assert plan_placement(specs(2), [GPU_NODE]).exclusive_note is None


NODES = st.builds(
    Node, name=st.just("n"), cpus=st.integers(0, 32), gpus=st.integers(0, 4), trial_slots=st.integers(0, 1)
)


@given(st.lists(NODES, min_size=1, max_size=4), st.lists(st.integers(0, 16), min_size=1, max_size=4))
def test_exclusive_trials_never_share_a_node(nodes: list[Node], counts: list[int]) -> None:
    plan = exclusive(nodes, *counts)
    requests = set(plan.requests.values())
    for node in nodes:
        assert all(request.slots(node) <= 1 for request in requests)
        by_slot = any(request.trial_slots for request in requests)
        two_fit = any(2 * request.all_cpus <= node.cpus for request in requests)  # not even two that differ
        assert by_slot or not node.gpus or not two_fit
    assert bool(plan.requests) == (plan.most_at_once > 0)
