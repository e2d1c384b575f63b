"""Problems of a node's torch and GPUs, judged from its facts."""

from collections.abc import Iterator

from orchestrator.problems import Problem, ProblemKind
from orchestrator.wording import memory, one_line, plural
from trainables.node_facts import GpuFacts, NodeFacts

NEEDED_PACKAGES = ("torch", "torchvision", "ray", "pyarrow", "numpy", "pandas", "pydantic")
FREE_MEMORY_FRACTION = 0.9
"""A GPU with less of its memory free serves somebody else too."""


def torch_problems(facts: NodeFacts) -> Iterator[Problem]:
    if facts.torch is None:
        yield Problem(
            ProblemKind.TORCH_BROKEN,
            f"torch cannot be imported: {one_line(facts.torch_fault or 'no reason was given')}",
            "install torch and torchvision again, both from the same index of pytorch.org",
        )
    missing = [name for name, version in facts.versions if version is None and name in NEEDED_PACKAGES]
    if missing:
        yield Problem(
            ProblemKind.PACKAGE_MISSING,
            f"not installed: {', '.join(missing)}",
            "install this package with its dependencies: pip install -e . in its checkout",
        )


def unused_gpu_problems(facts: NodeFacts) -> Iterator[Problem]:
    """NVIDIA cards are there, and torch uses none."""
    if facts.torch is None or facts.torch.accelerator or not facts.nvidia_cards:
        return
    said = one_line(facts.torch.accelerator_fault or "it does not say why")
    cards = plural(facts.nvidia_cards, "NVIDIA GPU")
    if facts.gpus_hidden is not None:
        yield Problem(
            ProblemKind.GPUS_HIDDEN,
            f"{cards} here, hidden by {facts.gpus_hidden}: trials would run on the CPU",
            "unset the variable to train on them",
        )
    elif facts.torch.cuda_version is None:
        yield Problem(
            ProblemKind.TORCH_WITHOUT_CUDA,
            f"{cards} here, and torch {facts.torch.version} is a build without CUDA: trials would run on the CPU",
            "install the CUDA build of torch that pytorch.org names for the driver",
        )
    else:
        yield Problem(
            ProblemKind.GPU_UNUSABLE,
            f"{cards} here, and torch {facts.torch.version} can use none: {said}",
            f"bring driver ({facts.nvidia_driver or 'none loaded'}) and torch's CUDA ({facts.torch.cuda_version}) "
            "together: a newer driver, or a torch for an older CUDA; see that `nvidia-smi` answers",
        )


def gpu_problems(facts: NodeFacts) -> Iterator[Problem]:
    for gpu in facts.gpus:
        if gpu.fault is not None:
            yield Problem(
                ProblemKind.GPU_FAULTY,
                f"{_name(gpu)} could not do a small computation: {one_line(gpu.fault)}",
                "a torch built for its compute capability where the message names kernels, else look at `nvidia-smi` "
                "and the kernel's log (Xid), and leave the card out with CUDA_VISIBLE_DEVICES",
            )
        elif gpu.memory_bytes and (gpu.free_memory_bytes or 0) < FREE_MEMORY_FRACTION * gpu.memory_bytes:
            yield Problem(
                ProblemKind.GPU_IN_USE,
                f"{_name(gpu)} has {memory(gpu.free_memory_bytes or 0)} of {memory(gpu.memory_bytes)} free: somebody "
                "else uses it",
                "wait for them, or leave the card out with CUDA_VISIBLE_DEVICES; speeds measured beside them are wrong",
            )


def compile_problems(facts: NodeFacts) -> Iterator[Problem]:
    if facts.torch is None:
        return
    on_gpus = {gpu.compile_problem for gpu in facts.gpus if gpu.fault is None}
    reasons = on_gpus if facts.gpus else {facts.torch.cpu_compile_problem}
    for reason in sorted(reason for reason in reasons if reason):
        what, _, remedy = reason.partition(": ")
        yield Problem(ProblemKind.NO_COMPILE, f"compiled trials are unsupported: {what}", remedy)


def declaration_problems(facts: NodeFacts, declared_gpus: float) -> Iterator[Problem]:
    if facts.torch and declared_gpus > len(facts.gpus):
        yield Problem(
            ProblemKind.RAY_DECLARES_MORE_GPUS,
            f"Ray gives out {declared_gpus:g} GPUs, and torch sees {len(facts.gpus)}: trials would not train "
            "where they were placed",
            "start Ray there with the right --num-gpus, or mend what keeps torch from the GPUs",
        )


def _name(gpu: GpuFacts) -> str:
    return f"GPU {gpu.index} ({one_line(gpu.name, 60)})"
