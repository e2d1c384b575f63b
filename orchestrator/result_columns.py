"""The columns of results.parquet: names and types in their order, and one row for each result.

Absent is None, never NaN, 0 or an empty text. Columns that nothing measures yet are there, and None throughout.
"""

import types
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Any, get_args, get_type_hints

import pyarrow as pa

from orchestrator.account_columns import ACCOUNT_COLUMNS, account_columns
from orchestrator.compile_payback import Payback
from orchestrator.divergence_columns import DIVERGENCE_COLUMNS, divergence_columns
from orchestrator.loop_columns import LOOP_COLUMNS, loop_columns
from orchestrator.machine_columns import MACHINE_COLUMNS, machine_columns
from orchestrator.ranking import Standing
from orchestrator.results import Result, last_finite
from orchestrator.statistics import RateEstimate
from trainables.measurements import CompileMeasurement, LearningCurve
from trainables.outcomes import Durations, finite_or_none
from trainables.specs import KNOBS, MAIN_KNOBS, TrainingConfig, config_to_mapping

TEXT, INTEGER, NUMBER, TRUTH = pa.string(), pa.int64(), pa.float64(), pa.bool_()
TEXTS, INTEGERS, NUMBERS = pa.list_(TEXT), pa.list_(INTEGER), pa.list_(NUMBER)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One result, and what the report derived for it."""

    result: Result
    standing: Standing | None
    """None unless ranked."""
    not_ranked_reason: str | None
    rate: RateEstimate | None
    """Of this trial alone."""
    payback: Payback | None
    """Of compiling, against the eager twin."""


@cache
def result_schema() -> pa.Schema:
    knob_types = {name: _knob_type(hint) for name, hint in get_type_hints(TrainingConfig).items()}
    main = {name: knob_types[name] for name in MAIN_KNOBS}
    further = {name: knob_types[name] for name in KNOBS if name not in MAIN_KNOBS}
    return pa.schema({**_IDENTITY, **main, "seed": INTEGER, **further, **_REST})


def result_row(row: Row) -> dict[str, Any]:
    """Plain values under the names of `result_schema`."""
    return {
        **_identity(row),
        **config_to_mapping(row.result.outcome.spec.config),
        **_asked(row.result),
        **_learning(row.result),
        **_throughput(row),
        **loop_columns(row.result),
        **_compilation(row),
        **_precision(row.result),
        **account_columns(row.result.outcome, row.payback),
        **_cost(row.result),
        **_machine(row.result),
        **machine_columns(row.result.outcome.machine),
        **divergence_columns(row.result.outcome.divergence),
        **dict.fromkeys(NOT_MEASURED_YET),
    }


NOT_MEASURED_YET = (
    "evaluation_compile_seconds",
    "time_to_accuracy_seconds",
)

_IDENTITY: Mapping[str, pa.DataType] = {
    "trial_id": TEXT,
    "replicate": INTEGER,
    "status": TEXT,
    "status_reason": TEXT,
    "attempts": INTEGER,
    "rank": INTEGER,
    "on_pareto_front": TRUTH,
}

# The knobs stand between the two.
_REST: Mapping[str, pa.DataType] = {
    "model": TEXT,
    "dataset": TEXT,
    "epochs": INTEGER,
    "epochs_completed": INTEGER,
    "accuracy": NUMBER,
    "accuracy_by_epoch": NUMBERS,
    "train_loss": NUMBER,
    "validation_loss": NUMBER,
    "objective": NUMBER,
    "objective_name": TEXT,
    "objective_direction": TEXT,
    "unit": TEXT,
    "units_per_second": NUMBER,
    "images_per_second": NUMBER,
    "images_per_second_low": NUMBER,
    "images_per_second_high": NUMBER,
    "window_images": INTEGERS,
    "window_seconds": NUMBERS,
    "compute_images_per_second": NUMBER,
    "loader_images_per_second": NUMBER,
    "data_wait_fraction": NUMBER,
    "bottleneck": TEXT,
    "compile_seconds": NUMBER,
    "evaluation_compile_seconds": NUMBER,
    "compile_cache": TEXT,
    "graph_breaks": INTEGER,
    "graph_break_reasons": TEXTS,
    "recompilations": INTEGER,
    "compile_break_even_epochs": NUMBER,
    "skipped_steps": INTEGER,
    "final_loss_scale": NUMBER,
    "peak_memory_bytes": INTEGER,
    "train_seconds": NUMBER,
    "evaluation_seconds": NUMBER,
    "setup_seconds": NUMBER,
    "trial_seconds": NUMBER,
    "time_to_accuracy_seconds": NUMBER,
    "device": TEXT,
    "compute_capability": TEXT,
    "executed_precision": TEXT,
    "node": TEXT,
    "neighbours": INTEGER,
    "cpu_threads": INTEGER,
    "torch_version": TEXT,
    "cuda_version": TEXT,
    "driver_version": TEXT,
    "measurement_version": INTEGER,
    # Beyond the contract.
    "not_ranked_reason": TEXT,
    "max_steps": INTEGER,
    "measured_on": TEXT,
    "validation_images": INTEGER,
    "independent_validation_images": INTEGER,
    "notes": TEXTS,
    "finished_at": TEXT,
    "earlier_trials": INTEGER,
    **ACCOUNT_COLUMNS,
    **MACHINE_COLUMNS,
    **DIVERGENCE_COLUMNS,
    **LOOP_COLUMNS,
}


def _knob_type(hint: Any) -> pa.DataType:
    """Of a field of `TrainingConfig`; an optional one has the type of its values."""
    kind = (
        next(part for part in get_args(hint) if part is not type(None)) if isinstance(hint, types.UnionType) else hint
    )
    if issubclass(kind, (StrEnum, str)):
        return TEXT
    return {bool: TRUTH, int: INTEGER, float: NUMBER}[kind]


def _identity(row: Row) -> dict[str, Any]:
    outcome, standing = row.result.outcome, row.standing
    return {
        "trial_id": row.result.trial_id,
        "replicate": outcome.spec.replicate,
        "status": outcome.status.value,
        "status_reason": outcome.status_reason or None,
        "attempts": outcome.attempts,
        "rank": standing.rank if standing else None,
        "on_pareto_front": standing.on_pareto_front if standing else None,
        "not_ranked_reason": row.not_ranked_reason,
    }


def _asked(result: Result) -> dict[str, Any]:
    outcome = result.outcome
    return {
        "seed": outcome.spec.seed,
        "model": outcome.spec.model,
        "dataset": outcome.spec.dataset,
        "epochs": outcome.spec.protocol.epochs,
        "max_steps": outcome.spec.protocol.max_steps,
        "epochs_completed": outcome.epochs_completed,
    }


def _learning(result: Result) -> dict[str, Any]:
    """Accuracy twice: under its own name, and as the objective that any task has."""
    curve = result.outcome.curve or LearningCurve()
    known = result.accuracy is not None
    by_epoch = [None if value is None else finite_or_none(value) for value in curve.accuracy]
    return {
        "accuracy": result.accuracy,
        "accuracy_by_epoch": by_epoch or None,
        "train_loss": last_finite(curve.train_loss),
        "validation_loss": last_finite(curve.validation_loss),
        "objective": result.accuracy,
        "objective_name": "accuracy" if known else None,
        "objective_direction": "max" if known else None,
        "validation_images": result.outcome.validation_images,
        "independent_validation_images": result.outcome.independent_validation_images,
    }


def _throughput(row: Row) -> dict[str, Any]:
    measured, rate = row.result.outcome.throughput, row.rate
    return {
        "unit": "images" if rate else None,
        "units_per_second": rate.images_per_second if rate else None,
        "images_per_second": rate.images_per_second if rate else None,
        "images_per_second_low": rate.low if rate else None,
        "images_per_second_high": rate.high if rate else None,
        "window_images": list(measured.window_images) if measured else None,
        "window_seconds": [finite_or_none(value) for value in measured.window_seconds] if measured else None,
        "measured_on": measured.measured_on if measured else None,
    }


def _compilation(row: Row) -> dict[str, Any]:
    measured = row.result.outcome.compilation or CompileMeasurement()
    return {
        "compile_seconds": measured.compile_seconds,
        "compile_cache": measured.cache,
        "graph_breaks": measured.graph_breaks,
        "graph_break_reasons": list(measured.graph_break_reasons) or None,
        "recompilations": measured.recompilations,
        "compile_break_even_epochs": row.payback.epochs if row.payback else None,
    }


def _precision(result: Result) -> dict[str, Any]:
    measured = result.outcome.precision
    return {
        "executed_precision": measured.executed_precision if measured else None,
        "skipped_steps": measured.skipped_steps if measured else None,
        "final_loss_scale": measured.final_loss_scale if measured else None,
    }


def _cost(result: Result) -> dict[str, Any]:
    """Durations that are all 0 are those of a trial that never ran."""
    durations = result.outcome.durations
    ran = durations != Durations()
    return {
        "peak_memory_bytes": result.outcome.peak_memory_bytes,
        "train_seconds": durations.train_seconds if ran else None,
        "evaluation_seconds": durations.evaluation_seconds if ran else None,
        "setup_seconds": durations.setup_seconds if ran else None,
        "trial_seconds": durations.trial_seconds if ran else None,
    }


def _machine(result: Result) -> dict[str, Any]:
    device, placement = result.outcome.device, result.outcome.placement
    return {
        "device": device.device,
        "compute_capability": device.compute_capability,
        "node": placement.node,
        "neighbours": placement.neighbours,
        "cpu_threads": placement.cpu_threads,
        "torch_version": device.torch_version,
        "cuda_version": device.cuda_version,
        "driver_version": device.driver_version,
        "measurement_version": result.outcome.measurement_version,
        "notes": list(result.outcome.notes) or None,
        "finished_at": result.outcome.finished_at,
        "earlier_trials": placement.earlier_trials,
    }
