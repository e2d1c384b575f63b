"""What keeps machines from a sweep, or makes its numbers worse: judged from their facts."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from orchestrator.gpu_problems import (
    compile_problems,
    declaration_problems,
    gpu_problems,
    torch_problems,
    unused_gpu_problems,
)
from orchestrator.node_asking import NodeAnswer
from orchestrator.problems import Problem, ProblemKind
from orchestrator.wording import memory, one_line, plural, some_of
from trainables.node_facts import NodeFacts, StorageFacts

GIB = 2**30

SMALL_SHM_BYTES = 2 * GIB
"""For each trial at once: 8 batches of 256 float32 images of 3 x 224 x 224 are 1.2 GiB."""
FEW_CPUS_PER_GPU = 4
"""One for the training, three for loader workers."""
LITTLE_MEMORY_BYTES = 4 * GIB
"""For each trial at once: a process with torch and CUDA takes 2 to 3 GiB before any data."""
FEW_OPEN_FILES = 4096
"""Every tensor that a loader worker hands over is an open file, and Ray keeps sockets to every process of a node."""
LITTLE_DISK_BYTES = 5 * GIB


def problems_of(answers: Sequence[NodeAnswer]) -> list[Problem]:
    """Of all nodes and of what they have in common, those that stop a sweep first."""
    found = [replace(problem, node=answer.node) for answer in answers for problem in _problems(answer)]
    found += _differences([answer.facts for answer in answers if answer.facts])
    return sorted(found, key=lambda problem: not problem.stops)


def _problems(answer: NodeAnswer) -> Iterator[Problem]:
    if answer.facts is None:
        yield Problem(
            ProblemKind.NO_ANSWER,
            f"it could not say what it has: {one_line(answer.fault or 'no reason was given')}",
            "install this package there in the Python that runs Ray, and see that `nvidia-smi` answers",
        )
        return
    for check in _CHECKS:
        yield from check(answer.facts)
    if answer.declared_gpus is not None:
        yield from declaration_problems(answer.facts, answer.declared_gpus)


def _cores(facts: NodeFacts) -> Iterator[Problem]:
    gpus = len(facts.gpus)
    if not gpus or facts.cpus >= FEW_CPUS_PER_GPU * gpus:
        return
    share = facts.cpus // gpus
    each = f"{facts.cpus} CPU cores for {plural(gpus, 'GPU')}"
    if share < 1:
        what = f"{each}: not every GPU can train at once"
        remedy = "a machine with more cores: a trial needs one, and one for each of its loader workers"
    else:
        what = f"{each}: with all training at once each has {share}"
        remedy = f"num_workers at most {share - 1} if all GPUs are to be busy, or a machine with more cores"
    yield Problem(ProblemKind.FEW_CPUS_PER_GPU, what, remedy)


def _memory(facts: NodeFacts) -> Iterator[Problem]:
    trials = max(1, len(facts.gpus))
    if facts.memory_bytes is not None and facts.memory_bytes < LITTLE_MEMORY_BYTES * trials:
        yield Problem(
            ProblemKind.LITTLE_MEMORY,
            f"{memory(facts.memory_bytes)} of memory for {plural(trials, 'trial')} at once",
            "fewer trials at once (--max-concurrent), fewer loader workers, or more memory",
        )
    if facts.shm_bytes is not None and facts.shm_bytes < SMALL_SHM_BYTES * trials:
        yield Problem(
            ProblemKind.SMALL_SHARED_MEMORY,
            f"shared memory, /dev/shm, is {memory(facts.shm_bytes)} for {plural(trials, 'trial')} at once: loader "
            "workers hand their batches over in it, and die where it is full",
            f"give the container --shm-size={2 * trials}g or more, or keep num_workers at 0",
        )


def _open_files(facts: NodeFacts) -> Iterator[Problem]:
    if facts.open_files is None or facts.open_files >= FEW_OPEN_FILES:
        return
    can_rise = facts.open_files_hard is None or facts.open_files_hard >= FEW_OPEN_FILES
    most = "65536" if facts.open_files_hard is None else str(min(65536, facts.open_files_hard))
    yield Problem(
        ProblemKind.FEW_OPEN_FILES,
        f"a process may open {facts.open_files:,} files (ulimit -n): loader workers and Ray can run out of them",
        f"ulimit -n {most} before the command" if can_rise else "ask for a higher hard limit, 65536 (limits.conf)",
    )


def _storage(facts: NodeFacts) -> Iterator[Problem]:
    return storage_problems(facts.storage)


def storage_problems(storage: StorageFacts) -> Iterator[Problem]:
    where = f"the storage {storage.location}"
    if storage.fault is not None:
        yield Problem(
            ProblemKind.STORAGE_UNWRITABLE,
            f"{where} cannot be written: {one_line(storage.fault)}",
            "give another --storage, or the right to write there",
        )
    if storage.free_bytes is not None and storage.free_bytes < LITTLE_DISK_BYTES:
        yield Problem(
            ProblemKind.STORAGE_NEARLY_FULL,
            f"{where} has {memory(storage.free_bytes)} free: every unfinished trial keeps two checkpoints",
            "make room, or give another --storage",
        )
    if storage.shared is False:
        yield Problem(
            ProblemKind.STORAGE_NOT_SHARED,
            f"{where} is another one here than where the command runs: an interrupted trial goes on only on its node",
            "a shared file system or an object store (--storage s3://bucket/runs)",
        )


def _differences(nodes: Sequence[NodeFacts]) -> Iterator[Problem]:
    """Problems that no node shows alone."""
    for package in ("python", "ray", "torch", "torchvision", "sweep-orchestrator"):
        found = sorted({str(version) for facts in nodes for name, version in facts.versions if name == package})
        if len(found) > 1:
            yield Problem(
                ProblemKind.VERSIONS_DIFFER,
                f"the nodes have different versions of {package}: {some_of(found, 4)}",
                "the same on all machines: Ray refuses mixed versions, and outcomes of two torch versions are never "
                "ranked together",
            )
    models = sorted({gpu.name for facts in nodes for gpu in facts.gpus})
    if len(models) > 1:
        yield Problem(
            ProblemKind.GPU_MODELS_DIFFER,
            f"there are GPUs of {len(models)} models: {some_of(models, 4)}",
            "one ranking is made for each model; for one answer use machines of one model",
        )


_CHECKS: tuple[Callable[[NodeFacts], Iterator[Problem]], ...] = (
    torch_problems,
    unused_gpu_problems,
    gpu_problems,
    compile_problems,
    _cores,
    _memory,
    _open_files,
    _storage,
)
