"""What else the machine did while a trial trained: looked at between reports, never within a timed window."""

import multiprocessing
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from statistics import fmean, median
from typing import Protocol

import psutil
import torch

from trainables.measurements import MachineState
from trainables.nvml import GpuReading, NvmlGpu, foreign_processes
from trainables.process_times import ProcessTimes, read_trees, tree_of, used_seconds

SHORTEST_PAUSE_SECONDS = 1.0
"""Between two looks, however often a trial reports."""
LARGEST_SHARE = 0.01
"""Of the time, that looking may take: where a look is dear, they are rarer."""
SHORTEST_SPAN_SECONDS = 1.0
"""The system counts a core's time in hundredths of a second: a shorter span says nothing of others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuReading:
    """Counters of the node since its start, and the processes that belong to the sweep."""

    cpus: int
    busy_seconds: float
    """Of all cores together; time that a hypervisor took counts as busy."""
    all_seconds: float
    """Of all cores together, idle or not: a core's clock."""
    sweep: ProcessTimes
    trial_pids: frozenset[int]
    loader_affinity: tuple[int, ...] | None
    """Cores that the loader's workers may run on; None while there are none."""


class Machine(Protocol):
    def cpu(self) -> CpuReading: ...

    def gpu(self) -> GpuReading | None: ...

    def allocator_retries(self) -> int | None:
        """Since the start of the process."""


class ThisMachine:
    """The node that this process runs on, and the card that it trains on."""

    def __init__(self, device: torch.device, *, sweep_pids: Iterable[int] = ()) -> None:
        """`sweep_pids` are roots of further process trees that belong to the sweep and not to others."""
        self._roots = (*sweep_pids, os.getpid())
        self._device = device
        self._gpu = NvmlGpu.of(device)

    def cpu(self) -> CpuReading:
        node = psutil.cpu_times()
        busy = node.user + node.nice + node.system + node.irq + node.softirq + node.steal
        sweep = read_trees(self._roots)
        return CpuReading(
            cpus=psutil.cpu_count() or 1,
            busy_seconds=busy,
            all_seconds=busy + node.idle + node.iowait,
            sweep=sweep,
            trial_pids=tree_of(sweep, os.getpid()),
            loader_affinity=_affinity(child.pid for child in multiprocessing.active_children()),
        )

    def gpu(self) -> GpuReading | None:
        return None if self._gpu is None else self._gpu.read()

    def allocator_retries(self) -> int | None:
        if self._device.type != "cuda":
            return None
        retries = torch.cuda.memory_stats(self._device).get("num_alloc_retries")
        return None if retries is None else int(retries)


def _affinity(pids: Iterable[int | None]) -> tuple[int, ...] | None:
    """Of all of them together."""
    cores: set[int] = set()
    for pid in pids:
        with suppress(psutil.Error):
            cores.update(psutil.Process(pid).cpu_affinity() or ())
    return tuple(sorted(cores)) or None


class MachineWatch:
    """Gathers looks at the machine from its own making on."""

    def __init__(self, machine: Machine, *, glance: Callable[[], float]) -> None:
        """`glance` gives seconds; it only decides when to look."""
        self._machine = machine
        self._glance = glance
        self._began = self._latest = machine.cpu()
        self._retries_before = machine.allocator_retries()
        self._used_seconds = 0.0
        self._affinity: tuple[int, ...] | None = None
        self._gpu: list[GpuReading] = []
        self._foreign: list[int] = []
        self._samples = 0
        self._due = glance() + SHORTEST_PAUSE_SECONDS

    def look_if_due(self) -> MachineState | None:
        """None where the last look is too short ago."""
        return self.look() if self._glance() >= self._due else None

    def look(self) -> MachineState:
        """The state from the beginning until now."""
        started = self._glance()
        cpu, gpu = self._machine.cpu(), self._machine.gpu()
        self._used_seconds += used_seconds(self._latest.sweep, cpu.sweep)
        self._latest = cpu
        self._affinity = cpu.loader_affinity or self._affinity
        if gpu is not None:
            self._gpu.append(gpu)
            if (foreign := foreign_processes(gpu.processes, cpu.trial_pids)) is not None:
                self._foreign.append(foreign)
        self._samples += 1
        ended = self._glance()
        self._due = ended + max(SHORTEST_PAUSE_SECONDS, (ended - started) / LARGEST_SHARE)
        return self._state()

    def _state(self) -> MachineState:
        clocks = _known(reading.clock_mhz for reading in self._gpu)
        powers = _known(reading.power_watts for reading in self._gpu)
        utilizations = _known(reading.utilization for reading in self._gpu)
        return MachineState(
            samples=self._samples,
            gpu_clock_mhz=median(clocks) if clocks else None,
            gpu_clock_mhz_low=min(clocks, default=None),
            gpu_clock_mhz_max=max(_known(reading.clock_mhz_max for reading in self._gpu), default=None),
            gpu_temperature_celsius=max(_known(reading.temperature_celsius for reading in self._gpu), default=None),
            gpu_power_watts=fmean(powers) if powers else None,
            gpu_utilization=fmean(utilizations) if utilizations else None,
            throttle_reasons=tuple(sorted({name for reading in self._gpu for name in reading.throttle_reasons})),
            foreign_gpu_processes=max(self._foreign, default=None),
            foreign_cpus=self._foreign_cpus(),
            node_cpus=self._latest.cpus,
            loader_affinity=self._affinity,
            allocator_retries=self._allocator_retries(),
        )

    def _foreign_cpus(self) -> float | None:
        """Mean over the whole span: one core's share of what the sweep did not use, times the cores."""
        before, now = self._began, self._latest
        span = now.all_seconds - before.all_seconds
        if span < now.cpus * SHORTEST_SPAN_SECONDS:
            return None
        foreign = now.busy_seconds - before.busy_seconds - self._used_seconds
        return now.cpus * max(0.0, foreign) / span

    def _allocator_retries(self) -> int | None:
        retries, before = self._machine.allocator_retries(), self._retries_before
        return None if retries is None or before is None else retries - before


def _known(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]
