"""What a machine has, and what is wrong with it, in lines of text."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from orchestrator.node_asking import NodeAnswer
from orchestrator.problems import Problem
from orchestrator.wording import memory, one_line, plural
from trainables.node_facts import GpuFacts, NodeFacts, StorageFacts

SHOWN_VERSIONS = ("python", "torch", "torchvision", "ray", "pyarrow")


def node_lines(answer: NodeAnswer) -> list[str]:
    facts = answer.facts
    if facts is None:
        return [f"{one_line(answer.node)}: no answer"]
    named = [
        *(("GPU", text) for text in _gpu_texts(facts)),
        ("CPU", _cpu_text(facts)),
        ("memory", _memory_text(facts)),
        ("files", f"{_count(facts.open_files)} open at once (hard limit {_count(facts.open_files_hard)})"),
        ("storage", _storage_text(facts.storage)),
        ("versions", _versions_text(facts)),
    ]
    return [f"{one_line(answer.node)}: {facts.system}", *(f"  {name:<9}{text}" for name, text in named)]


def problem_lines(problems: Sequence[Problem]) -> Iterator[str]:
    if not problems:
        yield "No problem found."
    for problem in problems:
        place = f"{one_line(problem.node)}: " if problem.node else ""
        weight = "stops a sweep" if problem.stops else "may matter"
        yield f"{weight} ({problem.kind.value}): {place}{problem.what}. Remedy: {problem.remedy}."


def _gpu_texts(facts: NodeFacts) -> Iterator[str]:
    """Equal ones in one line."""
    if not facts.gpus:
        yield "none that torch can use: trials run on the CPU, one at a time with all cores"
    for text, alike in groupby(facts.gpus, key=_gpu_text):
        indices = [gpu.index for gpu in alike]
        numbers = str(indices[0]) if len(indices) == 1 else f"{indices[0]}–{indices[-1]}"
        yield f"{numbers}: {text}"


def _gpu_text(gpu: GpuFacts) -> str:
    parts = [one_line(gpu.name, 60)]
    if gpu.compute_capability:
        parts.append(f"compute capability {gpu.compute_capability}")
    if gpu.memory_bytes:
        parts.append(memory(gpu.memory_bytes))
    parts += [f"native {' '.join(gpu.native_precisions)}", _compile_text(gpu.compile_problem)]
    return "does not work" if gpu.fault else ", ".join(parts)


def _cpu_text(facts: NodeFacts) -> str:
    parts = [plural(facts.cpus, "core")]
    if facts.gpus:
        parts.append(f"{facts.cpus / len(facts.gpus):.3g} for each GPU")
    if facts.torch:
        native = " ".join(facts.torch.cpu_native_precisions)
        parts += [f"native {native} (other precisions are emulated)", _compile_text(facts.torch.cpu_compile_problem)]
    return ", ".join(parts)


def _compile_text(problem: str | None) -> str:
    return "no torch.compile" if problem else "torch.compile has what it needs"


def _memory_text(facts: NodeFacts) -> str:
    sizes = {"": facts.memory_bytes, "/dev/shm ": facts.shm_bytes}  # noqa: S108 - shown, not used
    return ", ".join(f"{name}{memory(size)}" for name, size in sizes.items() if size is not None)


def _storage_text(storage: StorageFacts) -> str:
    parts = [storage.location, "cannot be written" if storage.fault else "can be written"]
    if storage.free_bytes is not None:
        parts.append(f"{memory(storage.free_bytes)} free")
    if storage.shared is not None:
        parts.append("shared with the machine of this command" if storage.shared else "not shared")
    return ", ".join(parts)


def _versions_text(facts: NodeFacts) -> str:
    parts = [f"{name} {version}" for name, version in facts.versions if version and name in SHOWN_VERSIONS]
    if facts.torch:
        parts.append(f"torch's CUDA {facts.torch.cuda_version}" if facts.torch.cuda_version else "torch without CUDA")
    if facts.nvidia_driver:
        parts.append(f"NVIDIA driver {facts.nvidia_driver}")
    return ", ".join(parts)


def _count(limit: int | None) -> str:
    return "no limit" if limit is None else f"{limit:,}"
