"""Findings: a closed set of kinds, each with its evidence in numbers and the trials it is about.

The words, and what to do next, are in `finding_words`. A finding is there only where numbers of this run show it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from orchestrator.results import Result

Evidence = Mapping[str, float | int | str]


class FindingKind(StrEnum):
    """Most important first."""

    LEARNED_NOTHING = "learned_nothing"
    """Accuracy is still chance and the loss still ln(classes) at the end."""
    DIVERGED = "diverged"
    """Trials became non-finite, of one cause that their replays showed."""
    SEEDS_NOT_COMPLETED = "seeds_not_completed"
    """A ranked configuration did not complete from every seed."""
    FOREIGN_GPU_PROCESSES = "foreign_gpu_processes"
    """Processes that are not the trial's computed on its GPU."""
    CPU_LOAD_BY_OTHERS = "cpu_load_by_others"
    """Others kept cores busy that the trial needed."""
    THROTTLED = "throttled"
    """The GPU lowered its clock for want of power, or for heat."""
    UNSTABLE_TIMING = "unstable_timing"
    """The windows of one trial move its median more than processes differ."""
    BATCH_SIZE_BLAMED_FOR_LR = "batch_size_blamed_for_lr"
    """A larger batch is less accurate at a learning rate that was not moved, and that comparison is not fair."""
    BATCH_SIZE_CLEARED_BY_LR = "batch_size_cleared_by_lr"
    """A larger batch is less accurate at the same learning rate, and is not once that is scaled with it."""
    TOLERANCE_BELOW_SAMPLING_ERROR = "tolerance_below_sampling_error"
    DATA_BOUND = "data_bound"
    """The loader feeds less than compute could take."""
    DATA_BOUND_PAIR = "data_bound_pair"
    """Both trials of a precision or compile pair wait for data: the loop does not show what the knob does."""
    COMPILE_FELL_BACK = "compile_fell_back"
    """A part of a model that was to be compiled ran eagerly."""
    COMPILE_SLOWER = "compile_slower"
    COMPILE_NOT_PAID_BACK = "compile_not_paid_back"
    """Compiled steps are faster, but compiling took longer than they saved."""
    HALF_PRECISION_SLOWER = "half_precision_slower"
    HALF_PRECISION_NO_GAIN = "half_precision_no_gain"
    """fp16 or bf16 is not clearly faster than fp32, nor clearly slower among as many pairs as there are."""
    KNOB_HELPS_ON_ONE_SIDE = "knob_helps_on_one_side"
    """A knob makes training faster only from some value of another knob up, or only up to one."""
    KNOB_DEPENDS_ON_KNOB = "knob_depends_on_knob"
    """The speed-up of a knob differs clearly by the value of another."""
    RATES_DISAGREE = "rates_disagree"
    """Compute and loader, each alone, predict another rate than the loop has."""
    TOO_SHORT_TO_MEASURE = "too_short_to_measure"
    NEIGHBOURS = "neighbours"
    MORE_WORKERS_THAN_CPUS = "more_workers_than_cpus"
    ALLOCATOR_RETRIES = "allocator_retries"
    """The GPU's allocator gave its cache back to find memory."""
    RECOMPILATIONS = "recompilations"
    GRAPH_BREAKS = "graph_breaks"
    SKIPPED_STEPS = "skipped_steps"
    """The GradScaler left optimizer steps out."""
    MEASURED_ON_COPY = "measured_on_copy"
    GROWN_VALIDATION_SET = "grown_validation_set"
    """Validation images were grown from fewer source images, whose sampling error the accuracy carries."""
    SINGLE_SEED_ACCURACY = "single_seed_accuracy"
    """Accuracies that differ by less than their sampling error, each from one seed."""
    NOTE = "note"
    """What a trial did otherwise than it was asked to."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Finding:
    kind: FindingKind
    results: tuple[Result, ...]
    """The trials that it is about; empty where it is about all of them."""
    evidence: Evidence


def finding(kind: FindingKind, results: Sequence[Result] = (), **evidence: float | int | str) -> Finding:
    return Finding(kind=kind, results=tuple(results), evidence=MappingProxyType(evidence))
