"""The engine on a real local Ray, with a trainable that needs no torch."""

import json
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.cluster import Cluster, ray_cluster
from orchestrator.coordinator import Coordinator
from orchestrator.ledger import Ledger
from orchestrator.live import QuietView
from orchestrator.placement import Node, PlacementPlan, plan_placement
from orchestrator.ray_runner import run_on_ray
from orchestrator.strategy import IsolatedStrategy, PlannedStrategy, RetryPolicy, Strategy
from tests.builders import a_spec
from tests.fake_trainable import FakeTrainable
from trainables.outcomes import TrialOutcome
from trainables.specs import TrialSpec

pytestmark = pytest.mark.ray


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with ray_cluster(None, sweep_name="engine", num_cpus=12, num_gpus=4) as cluster:
        yield cluster


def does(what: str, *, lr: float, **more: Any) -> TrialSpec:
    return replace(a_spec(lr=lr, num_workers=int(more.pop("num_workers", 0))), model_args={"does": what} | more)


def swept(
    tmp_path: Path,
    cluster: Cluster,
    specs: list[TrialSpec],
    *,
    timeout: float | None = None,
    should_stop: Callable[[], bool] = lambda: False,
    most_at_once: int | None = None,
    placement: PlacementPlan | None = None,
    around: Callable[[Strategy], Strategy] = lambda strategy: strategy,
) -> tuple[list[TrialOutcome], Coordinator]:
    """Outcomes in the order of the specs, those of one trial in order of their attempts."""
    ledger = Ledger.create(str(tmp_path), "run")
    ledger.write_space("")
    retries = RetryPolicy(lost_retries=1)
    placement = placement or plan_placement(specs, cluster.nodes, most_at_once=most_at_once)
    coordinator = Coordinator(
        ledger=ledger,
        planned=specs,
        strategy=around(PlannedStrategy.of(placement.in_order(specs), retries)),
        retries=retries,
        known=(),
        view=QuietView(),
        clock=time.monotonic,
    )
    run_on_ray(
        coordinator,
        placement,
        ledger,
        sweep_name="run",
        trial_timeout_seconds=timeout,
        should_stop=should_stop,
        trainable=FakeTrainable,
    )
    order = {spec.trial_id: index for index, spec in enumerate(specs)}
    return sorted(ledger.outcomes(), key=lambda o: (order[o.spec.trial_id], o.attempts)), coordinator


def process(outcome: TrialOutcome) -> str:
    return outcome.notes[0]


def test_four_trials_run_at_once_on_four_different_gpus(tmp_path: Path, cluster: Cluster) -> None:
    folder = str(tmp_path / "gathered")
    specs = [does("gather", lr=0.1 * i, folder=folder, num_workers=2 * (i % 2)) for i in range(1, 5)]
    outcomes, _ = swept(tmp_path, cluster, specs)
    assert sorted(outcome.placement.accelerator_ids for outcome in outcomes) == [("0",), ("1",), ("2",), ("3",)]
    assert {outcome.placement.neighbours for outcome in outcomes} == {3}


def test_a_killed_worker_is_lost_and_tried_again_while_the_sweep_goes_on(tmp_path: Path, cluster: Cluster) -> None:
    specs = [does("die", lr=0.1), does("die once", lr=0.2), does("completed", lr=0.3)]
    outcomes, _ = swept(tmp_path, cluster, specs)
    assert [(o.spec.config.lr, o.status, o.attempts) for o in outcomes] == [
        (0.1, "lost", 1),
        (0.1, "lost", 2),
        (0.2, "lost", 1),
        (0.2, "completed", 2),
        (0.3, "completed", 1),
    ]
    assert "its worker process died" in (outcomes[0].status_reason or "")


def test_a_process_serves_good_trials_and_is_retired_after_a_bad_one(tmp_path: Path, cluster: Cluster) -> None:
    endings = ["completed", "completed", "out_of_memory", "completed", "unsupported", "completed"]
    specs = [does(ending, lr=0.1 * i) for i, ending in enumerate(endings, start=1)]
    outcomes, _ = swept(tmp_path, cluster, specs, most_at_once=1)
    assert [outcome.status for outcome in outcomes] == endings
    first, second, bad, *after = map(process, outcomes)
    assert first == second == bad
    assert bad not in after
    assert len(set(after)) == 1


def test_a_failure_is_tried_once_more_in_a_fresh_process(tmp_path: Path, cluster: Cluster) -> None:
    specs = [does("failed", lr=0.1), does("completed", lr=0.2), does("completed", lr=0.3)]
    outcomes, _ = swept(tmp_path, cluster, specs, most_at_once=1)
    failed, again, *others = outcomes
    assert (failed.attempts, again.attempts) == (1, 2)
    assert process(again) not in {process(failed), *map(process, others)}


def test_a_replicate_gets_a_process_of_its_own(tmp_path: Path, cluster: Cluster) -> None:
    spec = does("completed", lr=0.1)
    outcomes, _ = swept(tmp_path, cluster, [replace(spec, replicate=r) for r in range(3)], most_at_once=1)
    assert len(set(map(process, outcomes))) == 3


def test_isolation_gives_every_trial_a_process_of_its_own(tmp_path: Path, cluster: Cluster) -> None:
    specs = [does("completed", lr=0.1, number=i) for i in range(3)]
    assert len({spec.label for spec in specs}) == 1
    outcomes, _ = swept(
        tmp_path, cluster, specs, most_at_once=1, around=lambda strategy: IsolatedStrategy(inner=strategy)
    )
    assert len(set(map(process, outcomes))) == 3


def test_an_exclusive_trial_is_alone_on_its_node_however_many_are_let_loose(tmp_path: Path, cluster: Cluster) -> None:
    specs = [does("completed", lr=0.1 * i, num_workers=i) for i in range(1, 4)]
    alone = replace(plan_placement(specs, cluster.nodes, exclusive=True), most_at_once=3)
    outcomes, _ = swept(tmp_path, cluster, specs, placement=alone)
    assert [(outcome.status, outcome.placement.neighbours) for outcome in outcomes] == [("completed", 0)] * 3


def test_a_trial_over_its_time_is_ended_and_the_sweep_goes_on(tmp_path: Path, cluster: Cluster) -> None:
    specs = [does("hang", lr=0.1), does("completed", lr=0.2)]
    outcomes, _ = swept(tmp_path, cluster, specs, timeout=0.5, most_at_once=1)
    assert [outcome.status for outcome in outcomes] == ["timed_out", "completed"]
    assert "--trial-timeout 0.5 seconds" in (outcomes[0].status_reason or "")


def test_a_stop_ends_the_sweep_with_what_was_finished_stored(tmp_path: Path, cluster: Cluster) -> None:
    run = tmp_path / "run" / "outcomes"
    specs = [does("completed", lr=0.1), does("hang", lr=0.2), does("completed", lr=0.3)]
    outcomes, coordinator = swept(
        tmp_path, cluster, specs, should_stop=lambda: run.is_dir() and any(run.iterdir()), most_at_once=1
    )
    assert [outcome.status for outcome in outcomes] == ["completed"]
    assert [spec.config.lr for spec in coordinator.not_run()] == [0.2, 0.3]


def test_the_cluster_says_what_it_has(cluster: Cluster) -> None:
    assert [(node.cpus, node.gpus) for node in cluster.nodes] == [(12, 4)]
    assert isinstance(cluster.nodes[0], Node)
    assert cluster.dashboard is not None
    assert cluster.dashboard.startswith("http://127.0.0.1:")


def dashboard_workers(cluster: Cluster) -> list[str]:
    """The titles of the workers that the dashboard lists on its node."""
    token = Path.home() / ".ray" / "auth_token"
    headers = {"Authorization": f"Bearer {token.read_text().strip()}"} if token.exists() else {}

    def get(path: str) -> Any:
        request = urllib.request.Request(f"{cluster.dashboard}{path}", headers=headers)  # noqa: S310 - our own Ray
        with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310 - our own Ray
            return json.load(answer)["data"]

    (node,) = get("/nodes?view=summary")["summary"]
    workers = get(f"/nodes/{node['raylet']['nodeId']}")["detail"]["workers"]
    return [worker["cmdline"][0] for worker in workers if worker["cmdline"]]


def test_the_dashboard_lists_a_trial_under_its_readable_name(tmp_path: Path, cluster: Cluster) -> None:
    trial = does("hang", lr=0.25)

    def is_listed() -> bool:
        return f"ray::{trial.label}" in dashboard_workers(cluster)

    _, coordinator = swept(tmp_path, cluster, [trial], should_stop=is_listed)
    assert coordinator.not_run() == [trial]
