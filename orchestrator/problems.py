"""Problems of a machine or cluster: a closed set of kinds, each with what is wrong and its remedy."""

from dataclasses import dataclass
from enum import StrEnum


class ProblemKind(StrEnum):
    """The set is closed."""

    NO_ANSWER = "no_answer"
    TORCH_BROKEN = "torch_broken"
    PACKAGE_MISSING = "package_missing"
    TORCH_WITHOUT_CUDA = "torch_without_cuda"
    GPU_UNUSABLE = "gpu_unusable"
    GPU_FAULTY = "gpu_faulty"
    GPUS_HIDDEN = "gpus_hidden"
    GPU_IN_USE = "gpu_in_use"
    RAY_DECLARES_MORE_GPUS = "ray_declares_more_gpus"
    NO_COMPILE = "no_compile"
    FEW_CPUS_PER_GPU = "few_cpus_per_gpu"
    LITTLE_MEMORY = "little_memory"
    SMALL_SHARED_MEMORY = "small_shared_memory"
    FEW_OPEN_FILES = "few_open_files"
    STORAGE_UNWRITABLE = "storage_unwritable"
    STORAGE_NEARLY_FULL = "storage_nearly_full"
    STORAGE_NOT_SHARED = "storage_not_shared"
    VERSIONS_DIFFER = "versions_differ"
    GPU_MODELS_DIFFER = "gpu_models_differ"


STOPPING = frozenset(
    {
        ProblemKind.NO_ANSWER,
        ProblemKind.TORCH_BROKEN,
        ProblemKind.PACKAGE_MISSING,
        ProblemKind.TORCH_WITHOUT_CUDA,
        ProblemKind.GPU_UNUSABLE,
        ProblemKind.GPU_FAULTY,
        ProblemKind.RAY_DECLARES_MORE_GPUS,
        ProblemKind.STORAGE_UNWRITABLE,
    }
)
"""With these a sweep fails, or trains where it was not asked to; the others make it slower or less sure."""


@dataclass(frozen=True, slots=True)
class Problem:
    kind: ProblemKind
    what: str
    """What is wrong, with its numbers."""
    remedy: str
    node: str | None = None
    """None: it concerns no single node."""

    @property
    def stops(self) -> bool:
        return self.kind in STOPPING
