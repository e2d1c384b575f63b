"""The columns of results.parquet that tell what limits a training's rate."""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from orchestrator.results import Result

LOOP_COLUMNS: Mapping[str, pa.DataType] = {"host_fraction": pa.float64(), "diagnosis_seconds": pa.float64()}
"""Those beyond the contract."""


def loop_columns(result: Result) -> dict[str, Any]:
    """Plain values of these columns and of the contract's four."""
    loop, diagnosis = result.loop, result.outcome.diagnosis
    return {
        "compute_images_per_second": loop.compute.images_per_second if loop.compute else None,
        "loader_images_per_second": loop.loader.images_per_second if loop.loader else None,
        "data_wait_fraction": loop.data_wait_fraction,
        "bottleneck": loop.bottleneck.value if loop.bottleneck else None,
        "host_fraction": diagnosis.host_fraction if diagnosis else None,
        "diagnosis_seconds": diagnosis.diagnosis_seconds if diagnosis else None,
    }
