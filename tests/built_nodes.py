"""Machines for tests, built from facts."""

from dataclasses import replace
from typing import Any

from orchestrator.node_asking import NodeAnswer
from trainables.node_facts import GpuFacts, NodeFacts, StorageFacts, TorchFacts

GIB = 2**30
VERSIONS = {
    "python": "3.11.9",
    "torch": "2.9.1",
    "torchvision": "0.24.1",
    "triton": "3.5.1",
    "ray": "2.60.0",
    "pyarrow": "22.0.0",
    "numpy": "2.3.0",
    "pandas": "2.3.3",
    "pydantic": "2.12.0",
    "sweep-orchestrator": "0.1.0",
}
CPU_TORCH = TorchFacts(version="2.9.1+cpu", cpu_native_precisions=("fp32", "bf16"))
CUDA_TORCH = TorchFacts(
    version="2.9.1+cu128",
    cuda_version="12.8",
    accelerator="cuda",
    cpu_native_precisions=("fp32", "bf16"),
)


def an_h200(index: int = 0, **fields: Any) -> GpuFacts:
    given: dict[str, Any] = {
        "name": "NVIDIA H200",
        "compute_capability": "9.0",
        "memory_bytes": 140 * GIB,
        "free_memory_bytes": 139 * GIB,
        "native_precisions": ("fp32", "tf32", "fp16", "bf16"),
    }
    return GpuFacts(index=index, **(given | fields))


def a_laptop(**fields: Any) -> NodeFacts:
    """Eight cores and no GPU; nothing is wrong with it."""
    given: dict[str, Any] = {
        "node": "laptop",
        "system": "Linux-6.8.0-x86_64",
        "cpus": 8,
        "memory_bytes": 32 * GIB,
        "shm_bytes": 16 * GIB,
        "open_files": 65536,
        "open_files_hard": 1048576,
        "versions": tuple(VERSIONS.items()),
        "storage": StorageFacts(location="/data/runs", free_bytes=500 * GIB),
        "torch": CPU_TORCH,
    }
    return NodeFacts(**(given | fields))


def a_gpu_box(*gpus: GpuFacts, **fields: Any) -> NodeFacts:
    """128 cores and, unless others are given, eight H200; nothing is wrong with it."""
    cards = gpus or tuple(an_h200(index) for index in range(8))
    given: dict[str, Any] = {
        "node": "box",
        "cpus": 128,
        "memory_bytes": 2048 * GIB,
        "shm_bytes": 1024 * GIB,
        "nvidia_cards": len(cards),
        "nvidia_driver": "570.86.15",
        "torch": replace(CUDA_TORCH, gpus=cards),
    }
    return a_laptop(**(given | fields))


def answered(facts: NodeFacts, declared_gpus: float | None = None) -> NodeAnswer:
    return NodeAnswer(node=facts.node, facts=facts, declared_gpus=declared_gpus)
