"""What limits a loop: the verdict from three rates, their cross-check, and the ceiling they imply."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.bottleneck import Bottleneck, LoopRates, hides_compute, loop_rates, runs_rates
from orchestrator.results import results_of
from orchestrator.statistics import process_rate
from tests.built_outcomes import completed, config, parts, spec, windows
from trainables.measurements import ThroughputMeasurement
from trainables.outcomes import DeviceFacts


def loop(
    end_to_end: float | None, compute: float | None, loader: float | None, *, workers: int = 0, host: float = 1.0
) -> LoopRates:
    rates = [None if rate is None else process_rate(windows(rate)) for rate in (end_to_end, compute, loader)]
    return LoopRates(end_to_end=rates[0], compute=rates[1], loader=rates[2], num_workers=workers, host_fraction=host)


def scattered(rate: float, spread: float) -> LoopRates:
    """Compute and loader at about `rate`, whose windows scatter by `spread`."""
    seconds = tuple(100 / rate * (1 + spread * sign) for sign in (-1, 1, 1, -1) * 3)
    measured = process_rate(ThroughputMeasurement(window_images=(100,) * 12, window_seconds=seconds, measured_on="x"))
    return LoopRates(end_to_end=None, compute=measured, loader=measured, num_workers=1, host_fraction=1.0)


def test_a_loader_slower_than_compute_is_the_bottleneck_and_caps_what_compute_can_give() -> None:
    rates = loop(9_074.0, 21_000.0, 9_800.0, workers=2)
    assert rates.bottleneck is Bottleneck.DATA
    assert rates.data_wait_fraction == pytest.approx(1 - 9_074 / 21_000)
    assert rates.ceiling == pytest.approx(1.08, abs=0.001)
    assert (rates.predicted_images_per_second, rates.agrees) == (9_800.0, True)


def test_compute_slower_than_the_loader_is_the_bottleneck() -> None:
    rates = loop(1_000.0, 1_010.0, 30_000.0, workers=2)
    assert rates.bottleneck is Bottleneck.COMPUTE
    assert rates.data_wait_fraction == pytest.approx(1 / 101)


def test_a_cpu_without_workers_loads_and_computes_in_turn() -> None:
    """1 / 256 + 1 / 1024 = 1 / 204.8"""
    rates = loop(204.8, 1024.0, 256.0)
    assert (rates.predicted_images_per_second, rates.disagreement) == (204.8, 0.0)
    assert rates.bottleneck is Bottleneck.DATA
    assert rates.data_wait_fraction == pytest.approx(0.8)


def test_a_queueing_device_computes_while_its_host_loads() -> None:
    """The host needs a quarter of compute's time to give the steps away; the rest of it is free for loading."""
    assert loop(None, 1000.0, 2000.0, host=0.25).predicted_images_per_second == 1000.0
    assert loop(None, 1000.0, 1000.0, host=0.25).predicted_images_per_second == pytest.approx(800.0)
    assert loop(None, 1000.0, 500.0, host=0.0).predicted_images_per_second == 500.0


@pytest.mark.parametrize(("end_to_end", "agrees"), [(880.0, True), (1140.0, True), (800.0, False), (1300.0, False)])
def test_rates_that_do_not_fit_each_other_leave_the_bottleneck_unclear(end_to_end: float, agrees: bool) -> None:
    rates = loop(end_to_end, 5000.0, 1000.0, workers=1)
    assert rates.agrees is agrees
    assert rates.bottleneck is (Bottleneck.DATA if agrees else Bottleneck.UNCLEAR)


def test_compute_and_loader_that_are_alike_leave_the_bottleneck_unclear() -> None:
    assert loop(1000.0, 1040.0, 1000.0, workers=1).bottleneck is Bottleneck.UNCLEAR
    assert loop(1000.0, 1060.0, 1000.0, workers=1).bottleneck is Bottleneck.DATA


def test_a_difference_within_the_errors_of_both_leaves_the_bottleneck_unclear() -> None:
    sure, unsure = scattered(1000.0, 0.01), scattered(1100.0, 0.3)
    assert dataclasses.replace(sure, loader=scattered(1100.0, 0.01).loader).bottleneck is Bottleneck.COMPUTE
    assert dataclasses.replace(sure, loader=unsure.loader).bottleneck is Bottleneck.UNCLEAR


def test_what_was_not_measured_is_not_judged() -> None:
    assert loop(1000.0, None, 1000.0).bottleneck is None
    assert loop(1000.0, None, 1000.0).data_wait_fraction is None
    assert loop(1000.0, 1000.0, None).bottleneck is None
    unchecked = loop(None, 5000.0, 1000.0)
    assert (unchecked.agrees, unchecked.ceiling, unchecked.data_wait_fraction) == (None, None, None)
    assert unchecked.bottleneck is Bottleneck.DATA


RATE = st.floats(1.0, 1e6)


@given(RATE, RATE, st.integers(0, 4), st.floats(0.0, 1.0))
def test_the_whole_is_never_predicted_faster_than_its_slowest_part(
    compute: float, loader: float, workers: int, host: float
) -> None:
    rates = loop(None, compute, loader, workers=workers, host=host)
    assert rates.predicted_images_per_second is not None
    assert rates.predicted_images_per_second <= min(compute, loader) * (1 + 1e-9)
    assert rates.predicted_images_per_second >= min(compute, loader) / 2 * (1 - 1e-9)


@given(RATE, RATE, RATE)
def test_fractions_and_ceilings_stay_in_their_range(end_to_end: float, compute: float, loader: float) -> None:
    rates = loop(end_to_end, compute, loader)
    assert rates.data_wait_fraction is not None
    assert rates.ceiling is not None
    assert 0.0 <= rates.data_wait_fraction < 1.0
    assert rates.ceiling >= 1.0


def test_two_loops_that_wait_for_one_loader_hide_what_compute_does() -> None:
    """B06: steps of 20 and 10 ms over batches that take 160 ms to load."""
    slow, fast = loop(180.0, 1600.0, 200.0), loop(188.0, 3200.0, 200.0)
    assert hides_compute(slow, fast)
    assert hides_compute(loop(200.0, 1600.0, 200.0, workers=2), loop(190.0, 3200.0, 200.0, workers=2))


def test_compute_that_shows_in_the_loop_is_not_hidden() -> None:
    in_turn = loop(120.0, 300.0, 200.0), loop(171.0, 1200.0, 200.0)
    assert {rates.bottleneck for rates in in_turn} == {Bottleneck.DATA}
    assert not hides_compute(*in_turn)
    assert not hides_compute(loop(100.0, 100.0, 900.0, workers=1), loop(200.0, 200.0, 900.0, workers=1))


def test_the_rates_of_an_outcome_know_how_its_loop_runs() -> None:
    on_gpu = completed(diagnosis=parts(4000.0, 9000.0, host_fraction=0.3), device=DeviceFacts(device="NVIDIA H200"))
    on_cpu = completed(spec(config(num_workers=2)), diagnosis=parts(4000.0, 9000.0))
    assert loop_rates(on_gpu, None).host_fraction == 0.3
    assert (loop_rates(on_cpu, None).host_fraction, loop_rates(on_cpu, None).num_workers) == (1.0, 2)
    (result,) = results_of([on_cpu])
    assert result.loop.end_to_end is result.rate
    assert result.loop.loader == process_rate(windows(9000.0))


def test_windows_that_give_no_possible_rate_are_no_rate() -> None:
    impossible = ThroughputMeasurement(window_images=(1,), window_seconds=(0.0,), measured_on="loader")
    diagnosis = dataclasses.replace(parts(4000.0, None), loader=impossible)
    assert loop_rates(completed(diagnosis=diagnosis), None).loader is None


def test_the_runs_of_a_configuration_are_taken_together() -> None:
    alike = runs_rates([loop(1000.0, 4000.0, 1000.0, workers=1), loop(1000.0, 1000.0, 4000.0, workers=1)])
    assert alike.bottleneck is Bottleneck.UNCLEAR
    assert (alike.compute_images_per_second, alike.loader_images_per_second) == (pytest.approx(2000.0),) * 2
    assert alike.data_wait_fraction == pytest.approx(0.375)
    one = runs_rates([loop(1000.0, 4000.0, 1000.0, workers=1), loop(None, None, None)])
    assert one.bottleneck is Bottleneck.DATA
    assert runs_rates([loop(1000.0, None, None)]).bottleneck is None
