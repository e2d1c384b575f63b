"""The GPU's own state, as NVIDIA's management library (NVML) gives it; nothing where it gives nothing."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import pynvml
import torch

REASONS = {
    pynvml.nvmlClocksEventReasonSwPowerCap: "sw_power_cap",
    pynvml.nvmlClocksEventReasonHwSlowdown: "hw_slowdown",
    pynvml.nvmlClocksEventReasonSyncBoost: "sync_boost",
    pynvml.nvmlClocksEventReasonSwThermalSlowdown: "sw_thermal_slowdown",
    pynvml.nvmlClocksEventReasonHwThermalSlowdown: "hw_thermal_slowdown",
    pynvml.nvmlClocksEventReasonHwPowerBrakeSlowdown: "hw_power_brake_slowdown",
}
"""NVML's reasons for a lower clock, but for idleness and for clocks that somebody set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuReading:
    """One look at a card; None for what it does not tell."""

    clock_mhz: float | None = None
    """Of the multiprocessors."""
    clock_mhz_max: float | None = None
    temperature_celsius: float | None = None
    power_watts: float | None = None
    utilization: float | None = None
    """Fraction of NVML's last sampling period (at most a second) with a kernel running."""
    throttle_reasons: tuple[str, ...] = ()
    processes: tuple[int, ...] | None = None
    """Pids of those that compute on it; in a container they may be the host's numbers, or none."""


class NvmlGpu:
    """The card of a torch device. NVML counts cards otherwise than torch does, so it is found by its identity."""

    def __init__(self, handle: Any) -> None:
        self._handle = handle

    @classmethod
    def of(cls, device: torch.device) -> "NvmlGpu | None":
        """None without NVML or its card, and for a part of a card (MIG), whose clock and load are not its own."""
        if device.type != "cuda":
            return None
        uuid = f"GPU-{torch.cuda.get_device_properties(device).uuid}"
        try:
            pynvml.nvmlInit()
            handle = pynvml.nvmlDeviceGetHandleByUUID(uuid.encode())
        except pynvml.NVMLError:
            return None
        mig = _answer(pynvml.nvmlDeviceGetMigMode, handle)
        return None if mig and mig[0] == pynvml.NVML_DEVICE_MIG_ENABLE else cls(handle)

    def read(self) -> GpuReading:
        card = self._handle
        milliwatts = _answer(pynvml.nvmlDeviceGetPowerUsage, card)
        utilization = _answer(pynvml.nvmlDeviceGetUtilizationRates, card)
        processes = _answer(pynvml.nvmlDeviceGetComputeRunningProcesses, card)
        return GpuReading(
            clock_mhz=_answer(pynvml.nvmlDeviceGetClockInfo, card, pynvml.NVML_CLOCK_SM),
            clock_mhz_max=_answer(pynvml.nvmlDeviceGetMaxClockInfo, card, pynvml.NVML_CLOCK_SM),
            temperature_celsius=_answer(pynvml.nvmlDeviceGetTemperature, card, pynvml.NVML_TEMPERATURE_GPU),
            power_watts=None if milliwatts is None else milliwatts / 1000,
            utilization=None if utilization is None else utilization.gpu / 100,
            throttle_reasons=throttle_reasons(self._reasons()),
            processes=None if processes is None else tuple(process.pid for process in processes),
        )

    def _reasons(self) -> int:
        """As bits. Drivers before 535 know the query by its older name only."""
        current = _answer(pynvml.nvmlDeviceGetCurrentClocksEventReasons, self._handle)
        if current is None:
            current = _answer(pynvml.nvmlDeviceGetCurrentClocksThrottleReasons, self._handle)
        return current or 0


def throttle_reasons(bits: int) -> tuple[str, ...]:
    return tuple(name for bit, name in REASONS.items() if bits & bit)


def foreign_processes(listed: Sequence[int] | None, own: Collection[int]) -> int | None:
    """How many of the processes on a card are not among `own`, of which one at least computes on it.

    Where none of them is listed, the numbers are those of another namespace, and one of them is ours. A list that
    hides all of them says nothing.
    """
    if not listed:
        return None
    return min(len(listed) - 1, sum(pid not in own for pid in listed))


def _answer(query: Callable[..., Any], *arguments: Any) -> Any:
    """None where the card, the driver or the user's rights do not give it."""
    try:
        return query(*arguments)
    except pynvml.NVMLError:
        return None
