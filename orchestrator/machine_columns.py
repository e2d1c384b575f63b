"""The columns of results.parquet that tell the state of the machine: each a field of `MachineState`, by its name."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import pyarrow as pa

from trainables.measurements import MachineState

MACHINE_COLUMNS: Mapping[str, pa.DataType] = {
    "gpu_clock_mhz": pa.float64(),
    "gpu_clock_mhz_low": pa.float64(),
    "gpu_clock_mhz_max": pa.float64(),
    "gpu_temperature_celsius": pa.float64(),
    "gpu_power_watts": pa.float64(),
    "gpu_utilization": pa.float64(),
    "throttle_reasons": pa.list_(pa.string()),
    "foreign_gpu_processes": pa.int64(),
    "foreign_cpus": pa.float64(),
    "node_cpus": pa.int64(),
    "loader_affinity": pa.list_(pa.int64()),
    "allocator_retries": pa.int64(),
}


def machine_columns(machine: MachineState | None) -> dict[str, Any]:
    """Plain values; an empty list is None."""
    fields = asdict(machine or MachineState())
    values = {name: fields[name] for name in MACHINE_COLUMNS}
    return {name: list(value) or None if isinstance(value, tuple) else value for name, value in values.items()}
