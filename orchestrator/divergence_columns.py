"""The columns of results.parquet that tell what the replay of a diverged trial showed."""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from trainables.measurements import DivergenceDiagnosis

DIVERGENCE_COLUMNS: Mapping[str, pa.DataType] = {
    "divergence_cause": pa.string(),
    "divergence_step": pa.int64(),
    "divergence_in": pa.string(),
    "divergence_module": pa.string(),
    "divergence_fp32_survives": pa.bool_(),
    "gradient_norm_before_divergence": pa.float64(),
}


def divergence_columns(found: DivergenceDiagnosis | None) -> dict[str, Any]:
    """Plain values; all None for a trial that was not replayed."""
    if found is None:
        return dict.fromkeys(DIVERGENCE_COLUMNS)
    return {
        "divergence_cause": found.cause.value,
        "divergence_step": found.first_nonfinite_step,
        "divergence_in": found.nonfinite_in.value if found.nonfinite_in else None,
        "divergence_module": found.first_nonfinite_module,
        "divergence_fp32_survives": found.fp32_survives,
        "gradient_norm_before_divergence": found.gradient_norm_before,
    }
