"""Asks this machine what it has for a sweep; `python -m trainables.node_probe STORAGE` prints that as a line of JSON.

Meant for a process of its own: a broken driver can hang or end it, and the GPUs are given back with it.
"""

import importlib.metadata
import json
import math
import os
import platform
import resource
import shutil
import socket
import sys
from pathlib import Path

from trainables.node_facts import NodeFacts, TorchFacts, node_facts_to_mapping
from trainables.storage_probe import Token, find_storage_facts

PACKAGES = ("torch", "torchvision", "triton", "ray", "pyarrow", "numpy", "pandas", "pydantic", "sweep-orchestrator")

_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - the place itself is what is asked about
_DEVICE_FILES = Path("/dev")
_CGROUP = Path("/sys/fs/cgroup")
_HIDING_VARIABLES = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ONEAPI_DEVICE_SELECTOR")


def find_node_facts(storage: str, token: Token | None = None) -> NodeFacts:
    """`token` is what the machine that runs the command has put into the storage, where it is another one."""
    torch_facts, torch_fault = _torch_facts()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return NodeFacts(
        node=socket.gethostname(),
        system=platform.platform(),
        cpus=usable_cpus(len(os.sched_getaffinity(0)), _read(_CGROUP / "cpu.max")),
        memory_bytes=usable_memory(_physical_memory(), _read(_CGROUP / "memory.max")),
        shm_bytes=shutil.disk_usage(_SHARED_MEMORY).total if _SHARED_MEMORY.is_dir() else None,
        open_files=_limit(soft),
        open_files_hard=_limit(hard),
        versions=(("python", platform.python_version()), *((name, _version(name)) for name in PACKAGES)),
        nvidia_cards=_nvidia_cards(_DEVICE_FILES),
        nvidia_driver=_read(Path("/sys/module/nvidia/version")).strip() or None,
        gpus_hidden=_hiding_setting(os.environ),
        storage=find_storage_facts(storage, token),
        torch=torch_facts,
        torch_fault=torch_fault,
    )


def usable_cpus(affinity: int, cpu_max: str) -> int:
    """`cpu_max` is the text of cgroup 2's file of that name: a quota and a period in microseconds, or `max`."""
    quota, _, period = cpu_max.strip().partition(" ")
    if not quota.isdecimal() or not period.isdecimal():
        return affinity
    return max(1, min(affinity, math.floor(int(quota) / int(period))))


def usable_memory(physical: int, memory_max: str) -> int:
    """`memory_max` is the text of cgroup 2's file of that name: bytes, or `max`."""
    limit = memory_max.strip()
    return min(physical, int(limit)) if limit.isdecimal() else physical


def _torch_facts() -> tuple[TorchFacts | None, str | None]:
    """Imported here: a torch that cannot be imported is an answer too, and the rest is worth knowing."""
    try:
        from trainables.torch_facts import find_torch_facts
    except (ImportError, OSError) as error:  # OSError: one of its shared libraries cannot be loaded
        return None, str(error)
    return find_torch_facts(), None


def _physical_memory() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _limit(value: int) -> int | None:
    return None if value == resource.RLIM_INFINITY else value


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _nvidia_cards(folder: Path) -> int:
    """Device files `nvidia0`, `nvidia1`, … that may be opened: a container has those of the GPUs it was given."""
    files = [path for path in folder.glob("nvidia*") if path.name.removeprefix("nvidia").isdecimal()]
    return sum(os.access(path, os.R_OK | os.W_OK) for path in files)


def _hiding_setting(environment: "os._Environ[str]") -> str | None:
    for name in _HIDING_VARIABLES:
        if environment.get(name, "0").strip() in ("", "-1"):
            return f"{name}={environment[name]}"
    return None


def _read(path: Path) -> str:
    """Nothing where the system has no such file."""
    try:
        return path.read_text()
    except OSError:
        return ""


def main(arguments: list[str]) -> None:
    """STORAGE, and where there is a token its folder and its name."""
    storage, *token = arguments
    facts = find_node_facts(storage, Token(folder=token[0], name=token[1]) if token else None)
    sys.stdout.write(f"{json.dumps(node_facts_to_mapping(facts), allow_nan=False)}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
