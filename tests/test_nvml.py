"""What NVML's answers mean, and that its absence is no error."""

import os

import pynvml
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from trainables.nvml import NvmlGpu, foreign_processes, throttle_reasons


@pytest.mark.parametrize(
    ("listed", "foreign"),
    [
        ((10,), 0),
        ((10, 11), 0),
        ((10, 77), 1),
        ((77, 10, 78), 2),
        ((4001,), 0),  # numbers of the host, seen from a container: one of them is this trial's
        ((4001, 4002), 1),
        ((), None),
        (None, None),
    ],
)
def test_processes_on_the_card_that_are_not_the_trials(listed: tuple[int, ...] | None, foreign: int | None) -> None:
    assert foreign_processes(listed, {10, 11}) == foreign


@given(st.integers(0, 2**12 - 1))
def test_idleness_and_clocks_that_somebody_set_are_no_throttling(bits: int) -> None:
    left_out = (
        pynvml.nvmlClocksEventReasonGpuIdle
        | pynvml.nvmlClocksEventReasonApplicationsClocksSetting
        | pynvml.nvmlClocksEventReasonDisplayClockSetting
    )
    assert throttle_reasons(bits & left_out) == ()
    assert throttle_reasons(bits) == throttle_reasons(bits & ~left_out)


def test_reasons_have_nvmls_names() -> None:
    bits = pynvml.nvmlClocksEventReasonSwPowerCap | pynvml.nvmlClocksEventReasonHwThermalSlowdown
    assert throttle_reasons(bits) == ("sw_power_cap", "hw_thermal_slowdown")


def test_a_cpu_has_no_card_to_ask() -> None:
    assert NvmlGpu.of(torch.device("cpu")) is None


def test_what_a_card_does_not_answer_is_none() -> None:
    """NVML refuses every query without a card, as it refuses single ones on cards that do not support them."""
    reading = NvmlGpu(None).read()
    assert (reading.clock_mhz, reading.temperature_celsius, reading.power_watts) == (None, None, None)
    assert (reading.utilization, reading.throttle_reasons, reading.processes) == (None, (), None)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_a_real_card_tells_its_state() -> None:
    device = torch.device("cuda", torch.cuda.current_device())
    work = torch.rand(2048, 2048, device=device)
    gpu = NvmlGpu.of(device)
    if gpu is None:
        pytest.skip("no NVML, or a part of a card (MIG)")
    for _ in range(20):
        work = work @ work / work.norm()
    reading = gpu.read()
    torch.cuda.synchronize()
    assert reading.clock_mhz is not None
    assert reading.clock_mhz_max is not None
    assert 0 < reading.clock_mhz <= reading.clock_mhz_max
    assert reading.temperature_celsius is not None
    assert 0 < reading.temperature_celsius < 120
    assert reading.power_watts is None or 0 < reading.power_watts < 2000
    assert reading.utilization is None or 0 <= reading.utilization <= 1
    assert foreign_processes(reading.processes, {os.getpid()}) in (None, 0)
