"""Findings that the state of the machine shows: beside strangers, under a lowered clock, or on too few cores."""

from collections.abc import Callable, Iterator, Sequence

from orchestrator.findings import Finding, FindingKind, finding
from orchestrator.results import Result
from trainables.measurements import MachineState
from trainables.specs import TrainingConfig

FOREIGN_CPUS = 0.25
"""Cores: as much as Ray, a shell and the system itself use when nothing else runs, and half as much again."""


def machine_findings(results: Sequence[Result]) -> Iterator[Finding]:
    """Of the trials that told the state of their machine."""
    known = {result: machine for result in results if (machine := result.outcome.machine) is not None}
    yield from _throttled(known)
    yield from _foreign_gpu_processes(known)
    yield from _cpu_load_by_others(known)
    yield from _more_workers_than_cpus(known)
    yield from _allocator_retries(known)


def foreign_cpus_allowed(config: TrainingConfig, machine: MachineState, cpu_threads: int, *, on_cpu: bool) -> float:
    """Cores that others may keep busy before a trial can suffer.

    On a CPU the trial has the node to itself, and whoever runs there takes memory bandwidth and clock from it. On a
    GPU others may have the cores that it does not need itself.
    """
    spare = (machine.node_cpus or 0) - cpu_threads - config.num_workers
    return FOREIGN_CPUS if on_cpu else max(FOREIGN_CPUS, float(spare))


Known = dict[Result, MachineState]


def _throttled(known: Known) -> Iterator[Finding]:
    found = [result for result, machine in known.items() if machine.throttle_reasons]
    if found:
        slowest = min(found, key=lambda result: known[result].gpu_clock_mhz_low or 0.0)
        clock, highest = known[slowest].gpu_clock_mhz_low, known[slowest].gpu_clock_mhz_max
        temperature = max(known[result].gpu_temperature_celsius or 0.0 for result in found)
        yield finding(
            FindingKind.THROTTLED,
            found,
            count=len(found),
            reasons=", ".join(sorted({reason for result in found for reason in known[result].throttle_reasons})),
            clock="unknown" if clock is None else f"{clock:.0f} MHz",
            highest="unknown" if highest is None else f"{highest:.0f} MHz",
            temperature=f"{temperature:.0f} °C" if temperature else "unknown",
        )


def _foreign_gpu_processes(known: Known) -> Iterator[Finding]:
    yield from _most(FindingKind.FOREIGN_GPU_PROCESSES, known, lambda machine: machine.foreign_gpu_processes or 0)


def _allocator_retries(known: Known) -> Iterator[Finding]:
    yield from _most(FindingKind.ALLOCATOR_RETRIES, known, lambda machine: machine.allocator_retries or 0)


def _most(kind: FindingKind, known: Known, count_of: Callable[[MachineState], int]) -> Iterator[Finding]:
    counts = {result: count for result, machine in known.items() if (count := count_of(machine)) > 0}
    if counts:
        yield finding(kind, list(counts), count=len(counts), most=max(counts.values()))


def _cpu_load_by_others(known: Known) -> Iterator[Finding]:
    loaded = {result: busy for result, machine in known.items() if (busy := _too_busy(result, machine)) is not None}
    if loaded:
        worst = max(loaded, key=lambda result: loaded[result])
        yield finding(
            FindingKind.CPU_LOAD_BY_OTHERS,
            list(loaded),
            count=len(loaded),
            foreign_cpus=loaded[worst],
            node_cpus=known[worst].node_cpus or 0,
        )


def _too_busy(result: Result, machine: MachineState) -> float | None:
    """Cores that others kept busy, where that is more than the trial can bear."""
    outcome = result.outcome
    allowed = foreign_cpus_allowed(
        outcome.spec.config,
        machine,
        outcome.placement.cpu_threads or 1,
        on_cpu=outcome.device.device == "cpu",
    )
    busy = machine.foreign_cpus
    return busy if busy is not None and busy > allowed else None


def _more_workers_than_cpus(known: Known) -> Iterator[Finding]:
    cores = {result: _cores_for_workers(machine) for result, machine in known.items()}
    found = [result for result, count in cores.items() if count and result.outcome.spec.config.num_workers > count]
    if found:
        worst = max(found, key=lambda result: result.outcome.spec.config.num_workers)
        yield finding(
            FindingKind.MORE_WORKERS_THAN_CPUS,
            found,
            count=len(found),
            num_workers=worst.outcome.spec.config.num_workers,
            cpus=cores[worst],
        )


def _cores_for_workers(machine: MachineState) -> int:
    """Those that the workers may run on where that is known, else all of the node; 0 where nothing is known."""
    return len(machine.loader_affinity) if machine.loader_affinity else machine.node_cpus or 0
