"""What the state of the machine shows, and the words for it."""

from dataclasses import replace
from typing import Any

import pytest

from orchestrator.finding_words import finding_words
from orchestrator.findings import Finding, FindingKind
from orchestrator.machine_columns import MACHINE_COLUMNS, machine_columns
from orchestrator.machine_findings import foreign_cpus_allowed
from tests.built_outcomes import completed, config, spec
from tests.test_findings import found
from trainables.measurements import MachineState
from trainables.outcomes import DeviceFacts, Placement, TrialOutcome

QUIET_GPU = MachineState(
    samples=3,
    gpu_clock_mhz=1980.0,
    gpu_clock_mhz_low=1965.0,
    gpu_clock_mhz_max=1980.0,
    gpu_temperature_celsius=61.0,
    foreign_gpu_processes=0,
    foreign_cpus=0.2,
    node_cpus=16,
    loader_affinity=tuple(range(16)),
    allocator_retries=0,
)


def trial(machine: MachineState | None, num_workers: int = 0, *, device: str = "cpu", threads: int = 1) -> TrialOutcome:
    return completed(
        spec(config(num_workers=num_workers)),
        images=1_000_000,
        machine=machine,
        device=DeviceFacts(device=device, torch_version="2.14.1"),
        placement=Placement(node="here", cpu_threads=threads, neighbours=0),
    )


def quiet_but(**changed: Any) -> MachineState:
    return replace(QUIET_GPU, **changed)


def only(kind: FindingKind, *outcomes: TrialOutcome) -> Finding:
    (one,) = (finding for finding in found(*outcomes) if finding.kind is kind)
    return one


@pytest.mark.parametrize("machine", [None, MachineState(), QUIET_GPU, quiet_but(foreign_gpu_processes=None)])
def test_a_quiet_machine_and_one_that_was_not_asked_have_no_findings(machine: MachineState | None) -> None:
    assert found(trial(machine, device="NVIDIA H200")) == []


def test_a_lowered_clock_is_told_with_its_reasons() -> None:
    finding = only(
        FindingKind.THROTTLED,
        trial(quiet_but(throttle_reasons=("sw_power_cap",), gpu_clock_mhz_low=1700.0)),
        trial(
            quiet_but(
                throttle_reasons=("hw_thermal_slowdown",), gpu_clock_mhz_low=1200.0, gpu_temperature_celsius=88.0
            ),
            1,
        ),
        trial(QUIET_GPU, 2),
    )
    assert finding_words(finding).sentence == (
        "2 trials trained while the GPU held its clock down (hw_thermal_slowdown, sw_power_cap): as low as "
        "1200 MHz of 1980 MHz, at up to 88 °C."
    )


def test_a_lowered_clock_is_told_where_nothing_else_is_known() -> None:
    finding = only(FindingKind.THROTTLED, trial(MachineState(throttle_reasons=("sw_power_cap",))))
    assert "(sw_power_cap): as low as unknown of unknown, at up to unknown." in finding_words(finding).sentence


def test_strangers_on_the_gpu_are_counted() -> None:
    finding = only(
        FindingKind.FOREIGN_GPU_PROCESSES,
        trial(quiet_but(foreign_gpu_processes=2)),
        trial(quiet_but(foreign_gpu_processes=1), 2),
    )
    assert finding_words(finding).sentence.startswith("2 trials shared their GPU with processes that were not theirs")
    assert finding.evidence["most"] == 2


def test_on_a_cpu_a_stranger_that_burns_a_core_is_a_finding() -> None:
    finding = only(FindingKind.CPU_LOAD_BY_OTHERS, trial(MachineState(foreign_cpus=1.02, node_cpus=2)))
    assert finding_words(finding).sentence == (
        "1 trial trained while others kept up to 1.02 of the node's 2 cores busy."
    )


@pytest.mark.parametrize(
    ("workers", "threads", "on_cpu", "allowed"),
    [
        (0, 1, True, 0.25),  # the cores left over do not help: memory bandwidth and clock are shared
        (2, 6, True, 0.25),
        (4, 1, False, 11.0),
        (15, 1, False, 0.25),
        (40, 1, False, 0.25),
    ],
)
def test_on_a_gpu_node_others_may_have_the_cores_that_the_trial_does_not_need(
    workers: int, threads: int, on_cpu: bool, allowed: float
) -> None:
    assert foreign_cpus_allowed(config(num_workers=workers), QUIET_GPU, threads, on_cpu=on_cpu) == allowed


@pytest.mark.parametrize(("busy", "told"), [(10.9, False), (11.1, True)])
def test_a_gpu_trial_suffers_from_others_only_where_its_own_cores_are_taken(busy: float, told: bool) -> None:
    outcome = trial(quiet_but(foreign_cpus=busy), 4, device="NVIDIA H200")
    assert (FindingKind.CPU_LOAD_BY_OTHERS in [finding.kind for finding in found(outcome)]) is told


def test_more_workers_than_cores_are_flagged() -> None:
    outcomes = [trial(MachineState(node_cpus=2), workers) for workers in (0, 2, 24)]
    finding = only(FindingKind.MORE_WORKERS_THAN_CPUS, *outcomes)
    assert [result.outcome.spec.config.num_workers for result in finding.results] == [24]
    assert finding_words(finding).sentence == "1 trial had more loader workers than cores to run them: up to 24 on 2."


def test_pinned_workers_have_only_the_cores_they_are_pinned_to() -> None:
    finding = only(FindingKind.MORE_WORKERS_THAN_CPUS, trial(MachineState(node_cpus=16, loader_affinity=(0, 1)), 4))
    assert (finding.evidence["num_workers"], finding.evidence["cpus"]) == (4, 2)


def test_a_card_nearly_full_is_told_by_the_allocators_retries() -> None:
    finding = only(FindingKind.ALLOCATOR_RETRIES, trial(quiet_but(allocator_retries=7)))
    assert "up to 7 times" in finding_words(finding).sentence


def test_the_columns_are_the_fields_with_nothing_instead_of_an_empty_list() -> None:
    row = machine_columns(quiet_but(throttle_reasons=("sw_power_cap",)))
    assert list(row) == list(MACHINE_COLUMNS)
    assert row["throttle_reasons"] == ["sw_power_cap"]
    assert row["loader_affinity"] == list(range(16))
    assert row["foreign_gpu_processes"] == 0
    assert set(machine_columns(None).values()) == set(machine_columns(MachineState()).values()) == {None}
