"""Ray, started here or joined: what it has, and how it is left."""

import importlib.metadata
import logging
import os
import platform
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import ray

from orchestrator.placement import Node
from trainables.errors import InputError

OBJECT_STORE_BYTES = 256 * 1024**2
"""Trials send a few kilobytes each; Ray's default would reserve a third of the memory."""


CONNECT_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    nodes: tuple[Node, ...]
    """Living nodes, and the node types that an autoscaler can still start."""
    dashboard: str | None
    """Address of the Ray dashboard, where it runs."""
    joined: bool

    @property
    def gpus(self) -> float:
        return sum(node.gpus * node.how_many for node in self.nodes)


@contextmanager
def ray_cluster(
    address: str | None, *, sweep_name: str, num_cpus: int | None = None, num_gpus: int | None = None
) -> Iterator[Cluster]:
    """A fresh local Ray, which ends with the block, or the one at `address`. Raises `InputError` if none answers.

    `num_cpus` and `num_gpus` declare what a local Ray has; None: what the machine has.
    """
    _quiet_environment()
    options: dict[str, Any] = {
        "log_to_driver": False,
        "logging_level": logging.ERROR,
        "job_config": ray.job_config.JobConfig(metadata={"job_name": sweep_name}),
        "configure_logging": True,
    }
    if address is None:
        options |= {
            "num_cpus": num_cpus,
            "num_gpus": num_gpus,
            "address": "local",  # never a stranger's cluster that happens to run on the machine
            "include_dashboard": True,
            "dashboard_host": "127.0.0.1",
            "object_store_memory": OBJECT_STORE_BYTES,
        }
    else:
        options["address"] = address
        _refuse_dead(address)
    try:
        context = ray.init(**options)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise _no_answer(address, error) from error
    try:
        url = context.dashboard_url
        yield Cluster(
            nodes=tuple(_nodes()),
            dashboard=f"http://{url}" if url else None,
            joined=address is not None,
        )
    finally:
        ray.shutdown()


def _refuse_dead(address: str) -> None:
    """Ray itself waits for minutes before it gives up on an address where nothing listens."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdecimal():
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_SECONDS).close()
        except (OSError, OverflowError) as error:
            raise _no_answer(address, error) from error


def _no_answer(address: str | None, error: Exception) -> InputError:
    if address is None:
        return InputError(
            f"a local Ray did not start ({str(error).splitlines()[0]}); see the logs in Ray's session folder"
        )
    return InputError(
        f"--address {address}: no Ray answered ({str(error).splitlines()[0]}); give the host:port that "
        "`ray start --head` printed, or leave --address out to start a local Ray"
    )


def environment(cluster: Cluster, command: list[str]) -> dict[str, Any]:
    """What a run was started on: versions, nodes and the command, as plain values."""
    packages = ("torch", "torchvision", "ray", "numpy", "pandas", "pyarrow", "sweep-orchestrator")
    versions: dict[str, str | None] = {}
    for package in packages:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            versions[package] = None
    nodes = [
        {"name": node.name, "cpus": node.cpus, "gpus": node.gpus, "how_many": node.how_many} for node in cluster.nodes
    ]
    return {
        "command": command,
        "python": sys.version.split()[0],
        "platform": platform.platform(),
        "versions": versions,
        "nodes": nodes,
    }


def _quiet_environment() -> None:
    """Set before Ray starts: nothing is sent outside, nothing is printed by Tune, trials keep the working folder."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ["RAY_AIR_NEW_OUTPUT"] = "0"
    os.environ["RAY_CHDIR_TO_TRIAL_DIR"] = "0"
    os.environ["TUNE_DISABLE_AUTO_CALLBACK_LOGGERS"] = "1"
    os.environ["TUNE_PRINT_ALL_TRIAL_ERRORS"] = "0"
    os.environ["TUNE_DISABLE_SIGINT_HANDLER"] = "1"  # the sweep has its own, which also serves SIGTERM
    os.environ["TUNE_GLOBAL_CHECKPOINT_S"] = "3600"  # Tune's own state is never read back
    os.environ["TUNE_WARN_EXCESSIVE_EXPERIMENT_CHECKPOINT_SYNC_THRESHOLD_S"] = "0"
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    logging.getLogger("ray").setLevel(logging.ERROR)
    logging.getLogger("ray.tune").setLevel(logging.CRITICAL)  # trials that did not complete are in our own report


def _nodes() -> Iterator[Node]:
    for entry in ray.nodes():  # type: ignore[no-untyped-call]
        if entry["Alive"]:
            has = entry["Resources"]
            yield Node(
                name=entry["NodeManagerHostname"],
                cpus=has.get("CPU", 0.0),
                gpus=has.get("GPU", 0.0),
                trial_slots=has.get("trial_slot", 0.0),
            )
    config = ray._private.state.state.get_cluster_config()  # the only way to the autoscaler's node types
    for group in config.node_group_configs if config else ():
        yield Node(
            name=f"node type {group.name}",
            cpus=float(group.resources.get("CPU", 0)),
            gpus=float(group.resources.get("GPU", 0)),
            how_many=max(0, group.max_count) if group.max_count >= 0 else 1,
            trial_slots=float(group.resources.get("trial_slot", 0)),
        )
