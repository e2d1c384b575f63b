"""Placement: requests, slots and refusals."""

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.placement import Node, Request, plan_placement
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
