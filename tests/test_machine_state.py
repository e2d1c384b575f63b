"""The state of the machine, from a machine that the test plays."""

import os
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import torch

from tests.trial_building import checkpoints_in, last_checkpoint, run_toy, toy_spec, trained_hash, weights_hash
from trainables.machine_state import CpuReading, MachineWatch, ThisMachine
from trainables.nvml import GpuReading
from trainables.outcomes import TrialStatus
from trainables.process_times import ProcessKey, ProcessTime

ME = 10


@dataclass
class PlayedMachine:
    """Four cores that the trial and strangers use as the test says; looking takes no time unless it says so."""

    now: float = 0.0
    trial_seconds: float = 50.0
    busy_seconds: float = 1000.0
    affinity: tuple[int, ...] | None = None
    reading: GpuReading | None = None
    retries: int | None = None
    look_seconds: float = 0.0
    looks: int = field(default=0)

    def passes(self, seconds: float, *, trial: float = 0.0, others: float = 0.0) -> None:
        """Wall seconds, and how many cores the trial and others kept busy in them."""
        self.now += seconds
        self.trial_seconds += seconds * trial
        self.busy_seconds += seconds * (trial + others)

    def glance(self) -> float:
        return self.now

    def cpu(self) -> CpuReading:
        self.looks += 1
        self.now += self.look_seconds
        own = ProcessTime(parent=1, own_seconds=self.trial_seconds, ended_children_seconds=0.0)
        return CpuReading(
            cpus=4,
            busy_seconds=self.busy_seconds,
            all_seconds=4 * self.now,
            sweep={ProcessKey(ME, 0.0): own},
            trial_pids=frozenset({ME}),
            loader_affinity=self.affinity,
        )

    def gpu(self) -> GpuReading | None:
        return self.reading

    def allocator_retries(self) -> int | None:
        return self.retries


def watch(machine: PlayedMachine) -> MachineWatch:
    return MachineWatch(machine, glance=machine.glance)


def test_what_others_used_is_told_from_what_the_trial_used() -> None:
    machine = PlayedMachine()
    watched = watch(machine)
    machine.passes(4.0, trial=2.0, others=0.0)
    assert watched.look().foreign_cpus == 0.0
    machine.passes(4.0, trial=2.0, others=1.0)
    state = watched.look()
    assert state.foreign_cpus == pytest.approx(0.5)  # mean over the whole span
    assert (state.samples, state.node_cpus) == (2, 4)


def test_counters_that_disagree_never_make_less_than_nothing() -> None:
    machine = PlayedMachine()
    watched = watch(machine)
    machine.passes(2.0, trial=1.0, others=-0.1)
    assert watched.look().foreign_cpus == 0.0


def test_a_span_too_short_for_the_counters_says_nothing_of_others() -> None:
    machine = PlayedMachine()
    watched = watch(machine)
    machine.passes(0.9, others=4.0)
    assert watched.look().foreign_cpus is None


def test_a_trial_that_reports_often_looks_once_a_second() -> None:
    machine = PlayedMachine()
    watched = watch(machine)
    for _ in range(100):
        machine.passes(0.05)
        watched.look_if_due()
    assert 1 + 4 <= machine.looks <= 1 + 5


def test_where_looking_is_dear_it_is_rare() -> None:
    machine = PlayedMachine(look_seconds=0.1)
    watched = watch(machine)
    machine.passes(2.0)
    assert watched.look_if_due() is not None
    machine.passes(9.0)
    assert watched.look_if_due() is None
    machine.passes(1.5)
    assert watched.look_if_due() is not None


def test_what_a_card_said_is_taken_together() -> None:
    machine = PlayedMachine(retries=3)
    watched = watch(machine)
    machine.reading = GpuReading(
        clock_mhz=1980, clock_mhz_max=1980, temperature_celsius=60, power_watts=300, utilization=1.0, processes=(ME,)
    )
    watched.look()
    machine.reading = GpuReading(
        clock_mhz=1500,
        clock_mhz_max=1980,
        temperature_celsius=88,
        power_watts=700,
        utilization=0.5,
        throttle_reasons=("sw_power_cap", "hw_thermal_slowdown"),
        processes=(ME, 77, 78),
    )
    watched.look()
    machine.reading = GpuReading(clock_mhz=1600, throttle_reasons=("sw_power_cap",))
    machine.retries = 5
    state = watched.look()
    assert (state.gpu_clock_mhz, state.gpu_clock_mhz_low, state.gpu_clock_mhz_max) == (1600, 1500, 1980)
    assert (state.gpu_temperature_celsius, state.gpu_power_watts, state.gpu_utilization) == (88, 500, 0.75)
    assert state.throttle_reasons == ("hw_thermal_slowdown", "sw_power_cap")
    assert (state.foreign_gpu_processes, state.allocator_retries) == (2, 2)


def test_without_a_card_only_the_processor_is_told() -> None:
    machine = PlayedMachine()
    state = watch(machine).look()
    card = (state.gpu_clock_mhz, state.gpu_clock_mhz_low, state.gpu_temperature_celsius, state.gpu_power_watts)
    assert card == (None, None, None, None)
    assert (state.throttle_reasons, state.foreign_gpu_processes, state.allocator_retries) == ((), None, None)


def test_the_cores_of_loader_workers_are_kept_once_they_were_seen() -> None:
    machine = PlayedMachine(affinity=(0, 2))
    watched = watch(machine)
    assert watched.look().loader_affinity == (0, 2)
    machine.affinity = None  # workers of an epoch that ended
    assert watched.look().loader_affinity == (0, 2)


def test_this_machine_knows_its_cores_and_this_process() -> None:
    reading = ThisMachine(torch.device("cpu")).cpu()
    assert reading.cpus == os.cpu_count()
    assert 0 < reading.busy_seconds <= reading.all_seconds
    assert os.getpid() in reading.trial_pids
    assert reading.loader_affinity is None


def test_a_trial_records_the_machine_it_ran_on() -> None:
    outcome = run_toy(toy_spec(num_workers=2, persistent_workers=True))
    assert outcome.machine is not None
    assert outcome.machine.samples >= 1
    assert outcome.machine.node_cpus == os.cpu_count()
    assert outcome.machine.loader_affinity == tuple(sorted(os.sched_getaffinity(0)))
    assert outcome.machine.gpu_clock_mhz is None


class BrokenMachine(PlayedMachine):
    def __init__(self, *_: object, **__: object) -> None:
        super().__init__()

    def cpu(self) -> CpuReading:
        if self.looks:
            raise PermissionError("no counters here")
        return super().cpu()


def test_a_machine_that_cannot_be_asked_costs_no_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = trained_hash(toy_spec(), tmp_path / "whole")
    monkeypatch.setattr("trainables.trial_run.ThisMachine", BrokenMachine)
    assert trained_hash(toy_spec(), tmp_path / "broken") == whole
    outcome = run_toy(toy_spec())
    assert outcome.status is TrialStatus.COMPLETED
    assert outcome.machine is None
    assert outcome.notes.count("the state of the machine is not known: PermissionError: no counters here") == 1


def test_looking_at_the_machine_moves_no_weight(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = toy_spec(
        dataset="noisy_stripes", num_workers=1, protocol={"max_steps": 8, "report_every_steps": 2, "epochs": None}
    )
    usual = trained_hash(spec, tmp_path / "usual")
    monkeypatch.setattr("trainables.machine_state.SHORTEST_PAUSE_SECONDS", -1.0)  # at every report
    monkeypatch.setattr("trainables.machine_state.LARGEST_SHARE", 1e9)
    outcome = run_toy(spec, checkpoints=checkpoints_in(tmp_path / "watched"))
    assert outcome.machine is not None
    assert outcome.machine.samples == 5
    assert weights_hash(last_checkpoint(spec, tmp_path / "watched")) == usual
