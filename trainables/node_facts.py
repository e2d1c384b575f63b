"""What one machine has for a sweep: the frozen types of its facts, and the one door to and from JSON."""

import json
from dataclasses import dataclass
from functools import cache
from typing import Any

from pydantic import ConfigDict, TypeAdapter


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuFacts:
    """One GPU, as torch sees it."""

    index: int
    name: str
    compute_capability: str | None = None
    memory_bytes: int | None = None
    free_memory_bytes: int | None = None
    native_precisions: tuple[str, ...] = ()
    """Of `fp32`, `tf32`, `fp16`, `bf16`: those it has instructions for."""
    compile_problem: str | None = None
    """Why `torch.compile` cannot work for it, with the remedy; None where it can."""
    fault: str | None = None
    """What it answered to a first small computation, where it could not do it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchFacts:
    """torch as it is installed, and the CPU as torch uses it."""

    version: str
    cuda_version: str | None = None
    """The CUDA or ROCm (`hip 6.4`) that torch was built with; None of a build for the CPU alone."""
    accelerator: str | None = None
    """torch's name of the kind of GPU that it can use here: `cuda`, `xpu`; None where there is none."""
    accelerator_fault: str | None = None
    """What torch says when it is asked for a GPU, where it has a GPU build and finds none."""
    cpu_native_precisions: tuple[str, ...] = ()
    cpu_compile_problem: str | None = None
    gpus: tuple[GpuFacts, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageFacts:
    """The storage of the runs, as this machine sees it."""

    location: str
    fault: str | None = None
    """What writing a small object to it said, where that failed."""
    free_bytes: int | None = None
    """On a local disk."""
    shared: bool | None = None
    """Whether this machine sees what the one that runs the command wrote; None where that was not asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFacts:
    """One machine. None stands for what could not be found out."""

    __pydantic_config__ = ConfigDict(allow_inf_nan=False, extra="forbid")

    node: str
    system: str
    cpus: int
    """Cores that a process may use here, the limits of a container counted."""
    memory_bytes: int | None = None
    shm_bytes: int | None = None
    """Size of /dev/shm, through which loader workers hand their batches over."""
    open_files: int | None = None
    """Soft limit of open files of a process (`ulimit -n`); None: no limit."""
    open_files_hard: int | None = None
    """What a process may raise it to; None: no limit."""
    versions: tuple[tuple[str, str | None], ...] = ()
    """Package and version, in the order of showing; None: not installed."""
    nvidia_cards: int = 0
    """NVIDIA GPUs with a device file that this process may open, whether or not torch can use them."""
    nvidia_driver: str | None = None
    gpus_hidden: str | None = None
    """The setting of the environment that hides all GPUs from this process (`CUDA_VISIBLE_DEVICES=`)."""
    storage: StorageFacts
    torch: TorchFacts | None = None
    torch_fault: str | None = None
    """What importing torch said, where that failed."""

    @property
    def gpus(self) -> tuple[GpuFacts, ...]:
        return self.torch.gpus if self.torch else ()


@cache
def _adapter() -> TypeAdapter[NodeFacts]:
    return TypeAdapter(NodeFacts)


def node_facts_to_mapping(facts: NodeFacts) -> dict[str, Any]:
    """Plain values, as strict JSON carries them."""
    mapping: dict[str, Any] = _adapter().dump_python(facts, mode="json")
    return mapping


def node_facts_from_mapping(mapping: dict[str, Any]) -> NodeFacts:
    """Raises `ValueError` (pydantic's ValidationError) where the mapping holds no such facts."""
    return _adapter().validate_json(json.dumps(mapping, allow_nan=False))
