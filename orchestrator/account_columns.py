"""The columns of results.parquet on compile and precision that the contract does not name."""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from orchestrator.compile_payback import Payback
from trainables.measurements import CompileMeasurement
from trainables.outcomes import TrialOutcome

ACCOUNT_COLUMNS: Mapping[str, pa.DataType] = {
    "compile_graphs": pa.int64(),
    "recompilations_while_timed": pa.int64(),
    "compile_gave_up": pa.bool_(),
    "compile_eager_functions": pa.list_(pa.string()),
    "compile_break_even_images": pa.float64(),
    "loss_scale_by_epoch": pa.list_(pa.float64()),
    "emulated": pa.bool_(),
    "tensor_cores": pa.bool_(),
    "matmul_precision": pa.string(),
    "convolution_tf32": pa.bool_(),
}


def account_columns(outcome: TrialOutcome, payback: Payback | None) -> dict[str, Any]:
    compiled, precision = outcome.compilation or CompileMeasurement(), outcome.precision
    return {
        "compile_graphs": compiled.graphs,
        "recompilations_while_timed": compiled.recompilations_while_timed,
        "compile_gave_up": compiled.gave_up,
        "compile_eager_functions": list(compiled.eager_functions) or None,
        "compile_break_even_images": payback.images if payback else None,
        "loss_scale_by_epoch": list(precision.loss_scale_by_epoch) or None if precision else None,
        "emulated": precision.emulated if precision else None,
        "tensor_cores": precision.tensor_cores if precision else None,
        "matmul_precision": precision.matmul_precision if precision else None,
        "convolution_tf32": precision.convolution_tf32 if precision else None,
    }
