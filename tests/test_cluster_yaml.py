"""The cluster files, read by Ray's own validator and held to what it lets pass: no cluster is started."""

import copy
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from ray.autoscaler._private.util import prepare_config, validate_config

ROOT = Path(__file__).resolve().parents[1]
CLOUD = ROOT / "cluster.yaml"
ON_PREMISES = ROOT / "clusters" / "onprem.yaml"
FILES = [CLOUD, *sorted((ROOT / "clusters").glob("*.yaml"))]

# vCPUs and GPUs, from https://aws.amazon.com/ec2/instance-types/
AWS_MACHINES = {
    "m6i.xlarge": (4, 0),
    "g4dn.xlarge": (4, 1),
    "g4dn.12xlarge": (48, 4),
    "g5.2xlarge": (8, 1),
    "g5.12xlarge": (48, 4),
    "g6.2xlarge": (8, 1),
    "p4d.24xlarge": (96, 8),
    "p5.48xlarge": (192, 8),
}

every_file = pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)


def read(path: Path) -> dict[str, Any]:
    config: dict[str, Any] = yaml.safe_load(path.read_text())
    return config


def prepared(config: dict[str, Any]) -> dict[str, Any]:
    """As `ray up` reads it. Raises where Ray refuses it."""
    whole: dict[str, Any] = prepare_config(copy.deepcopy(config))
    validate_config(whole)
    return whole


def commands(config: dict[str, Any]) -> list[str]:
    return [line for name, lines in config.items() if name.endswith("_commands") for line in lines]


def start_command(config: dict[str, Any], key: str) -> str:
    (start,) = (line for line in config[key] if "ray start" in line)
    return str(start)


def pins(config: dict[str, Any]) -> dict[str, str]:
    """Distribution → exact version, from the setup commands."""
    return dict(re.findall(r"'([a-z]+)(?:\[[a-z,]+\])?==([0-9.]+)'", " ".join(config["setup_commands"])))


@every_file
def test_ray_accepts_every_cluster_file(path: Path) -> None:
    assert prepared(read(path))["cluster_name"]


def test_ray_refuses_a_misspelt_key() -> None:
    """The validator above can say no."""
    with pytest.raises(Exception, match="max_worker"):
        prepared(read(CLOUD) | {"max_worker": 2})


def test_the_number_of_cloud_workers_is_stated_and_reaches_ray() -> None:
    """Left out, Ray takes 2 and says nothing."""
    config = read(CLOUD)
    workers = sum(kind.get("max_workers", 0) for kind in config["available_node_types"].values())
    assert config["max_workers"] == prepared(config)["max_workers"] == workers > 0


def test_the_cloud_head_takes_no_trials() -> None:
    config = read(CLOUD)
    assert config["available_node_types"][config["head_node_type"]]["resources"] == {"CPU": 0, "GPU": 0}


def test_declared_resources_are_those_of_the_machine() -> None:
    """Ray believes whatever is declared: 8 GPUs on a machine with one are accepted."""
    config = read(CLOUD)
    workers = {name: kind for name, kind in config["available_node_types"].items() if name != config["head_node_type"]}
    assert workers
    for kind in workers.values():
        cpus, gpus = AWS_MACHINES[kind["node_config"]["InstanceType"]]
        assert kind["resources"] == {"CPU": cpus, "GPU": gpus}
        assert gpus > 0


def test_cloud_workers_are_spot_machines() -> None:
    worker = read(CLOUD)["available_node_types"]["gpu_worker"]["node_config"]
    assert worker["InstanceMarketOptions"] == {"MarketType": "spot"}


def test_the_container_has_room_for_loader_workers_and_open_files() -> None:
    options = " ".join(read(CLOUD)["docker"]["run_options"])
    (gigabytes,) = re.findall(r"--shm-size=(\d+)gb", options)
    assert int(gigabytes) >= 4
    assert "--ulimit nofile=65536:65536" in options


@every_file
def test_open_files_are_raised_where_ray_starts(path: Path) -> None:
    config = read(path)
    for key in ("head_start_ray_commands", "worker_start_ray_commands"):
        assert start_command(config, key).startswith("ulimit -n 65536;")


def test_the_on_premises_file_lists_addresses_and_no_node_types() -> None:
    config = read(ON_PREMISES)
    provider = config["provider"]
    assert set(provider) == {"type", "head_ip", "worker_ips"}
    assert provider["head_ip"] not in provider["worker_ips"]
    assert "available_node_types" not in config
    assert config["max_workers"] == len(provider["worker_ips"])


def test_the_on_premises_head_takes_no_trials() -> None:
    start = start_command(read(ON_PREMISES), "head_start_ray_commands")
    assert "--num-cpus=0 --num-gpus=0" in start


@every_file
def test_the_dashboard_listens_on_loopback_only(path: Path) -> None:
    config = read(path)
    assert "--dashboard-host=127.0.0.1" in start_command(config, "head_start_ray_commands")
    assert not [line for line in commands(prepared(config)) if "0.0.0.0" in line]  # noqa: S104 - searched for, not bound


@every_file
def test_every_machine_asks_for_the_token(path: Path) -> None:
    config = read(path)
    (remote,) = (remote for remote, local in config["file_mounts"].items() if local == "~/.ray/auth_token")
    home = "/home/ray" if "docker" in config else "~"
    assert remote == f"{home}/.ray/auth_token"
    # Initialization commands run outside the container, so there the mode goes into its environment.
    said = config["docker"]["run_options"] if "docker" in config else config["initialization_commands"]
    assert "RAY_AUTH_MODE=token" in " ".join(said)


@every_file
def test_nothing_is_reported_to_the_outside(path: Path) -> None:
    assert "--disable-usage-stats" in start_command(read(path), "head_start_ray_commands")


@every_file
def test_the_same_versions_are_pinned_on_all_machines_and_fit_the_package(path: Path) -> None:
    config = read(path)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = {requirement.name: requirement for requirement in map(Requirement, project["dependencies"])}
    exact = pins(config)
    assert set(exact) == {"ray", "torch", "torchvision"}
    assert {name: version for name, version in exact.items() if not wanted[name].specifier.contains(version)} == {}
    assert "'ray[tune,default]==" in " ".join(config["setup_commands"])


def test_the_image_has_the_pinned_ray_and_a_python_that_the_package_takes() -> None:
    config = read(CLOUD)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    image = re.fullmatch(r"rayproject/ray:([0-9.]+)-py3(\d+)-gpu", config["docker"]["image"])
    assert image is not None
    assert image[1] == pins(config)["ray"]
    assert SpecifierSet(project["requires-python"]).contains(f"3.{image[2]}")


@every_file
def test_the_package_is_copied_and_installed(path: Path) -> None:
    config = read(path)
    (folder,) = (remote for remote, local in config["file_mounts"].items() if local == "./dist")
    assert all(f"{folder}/*.whl" in line for line in config["setup_commands"] if "pip install" in line)
