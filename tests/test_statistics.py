"""Rates, intervals, ratios and ties."""

import math
import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.interval_simulation import windows_of
from orchestrator.statistics import (
    DEFAULT_BETWEEN_PROCESS_SD,
    INTERVAL_Z,
    PRIOR_DF,
    BetweenProcess,
    ProcessRate,
    RateEstimate,
    between_processes,
    combined_df,
    effective_number,
    estimate_rate,
    family_widening,
    process_rate,
    rate_ratio,
    student_t,
    window_rates,
)
from trainables.measurements import ThroughputMeasurement

DEFAULT = BetweenProcess(sd=0.02, repeats=0)
rates = st.floats(1e-6, 1e12)


def measured(*window_rates: float) -> ThroughputMeasurement:
    return ThroughputMeasurement(
        window_images=(100,) * len(window_rates),
        window_seconds=tuple(100 / rate for rate in window_rates),
        measured_on="training",
    )


def one(rate: float, error: float = 0.0) -> ProcessRate:
    return ProcessRate(images_per_second=rate, standard_error=error, df=29, window_sd=0.0, windows=30)


def estimated(rate: float, error: float) -> RateEstimate:
    """Of which the windows tell all, with as many degrees of freedom as one likes."""
    return RateEstimate(images_per_second=rate, within=error**2, within_df=math.inf, between=0.0, between_df=math.inf)


def test_a_rate_is_the_median_of_the_windows() -> None:
    assert process_rate(measured(100.0, 50.0, 200.0)).images_per_second == 100.0
    assert process_rate(measured(100.0, 50.0, 200.0, 120.0)).images_per_second == pytest.approx(110.0)


def test_each_window_counts_its_own_images() -> None:
    measurement = ThroughputMeasurement(window_images=(100, 30), window_seconds=(2.0, 0.5), measured_on="training")
    assert window_rates(measurement) == [50.0, 60.0]


@pytest.mark.parametrize(
    ("images", "seconds"),
    [(100, 0.0), (100, -1.0), (0, 1.0), (100, math.nan), (100, math.inf), (100, 1e-300), (-5, 1.0)],
)
def test_a_rate_that_no_clock_can_give_is_refused(images: int, seconds: float) -> None:
    measurement = ThroughputMeasurement(window_images=(10, images), window_seconds=(1.0, seconds), measured_on="copy")
    with pytest.raises(ValueError, match="1 of 2 timed windows give no possible rate"):
        process_rate(measurement)


def test_alike_windows_leave_the_between_process_interval_alone() -> None:
    estimate = estimate_rate([process_rate(measured(*[1000.0] * 30))], DEFAULT)
    assert estimate.df == PRIOR_DF == 8
    assert estimate.low == pytest.approx(1000 * math.exp(-2.306 * 0.02))
    assert estimate.high == pytest.approx(1000 * math.exp(2.306 * 0.02))


def test_the_error_of_a_median_is_that_of_its_formula() -> None:
    """Alternating windows have no positive autocorrelation: sqrt(pi / 2) x 1.4826 MAD / sqrt(n)."""
    logs = [0.1 if index % 2 else -0.1 for index in range(30)]
    rate = process_rate(measured(*(math.exp(value) for value in logs)))
    assert rate.window_sd == pytest.approx(0.14826)
    assert rate.standard_error == pytest.approx(math.sqrt(math.pi / 2) * 0.14826 / math.sqrt(30))
    assert rate.df == 29


def test_one_stalled_window_moves_neither_the_rate_nor_its_error() -> None:
    calm = [1000.0 + index % 7 for index in range(29)]
    steady, stalled = process_rate(measured(*calm, 1003.0)), process_rate(measured(*calm, 10.0))
    assert stalled.images_per_second == steady.images_per_second
    assert stalled.window_sd == pytest.approx(steady.window_sd, rel=0.5)


def test_windows_of_which_most_are_alike_still_have_a_spread() -> None:
    assert process_rate(measured(*[1000.0] * 20, *[1100.0] * 10)).window_sd > 0.03


def test_one_window_is_uncertain_and_two_more_than_thirty() -> None:
    single, pair = process_rate(measured(1000.0)), process_rate(measured(990.0, 1010.0))
    many = process_rate(measured(*[990.0, 1010.0] * 15))
    assert single.standard_error > 0.1
    assert pair.standard_error * student_t(pair.df) > 10 * many.standard_error * student_t(many.df)


@given(st.lists(rates, min_size=1, max_size=40))
def test_a_rate_lies_among_its_windows_and_its_interval_is_finite(values: list[float]) -> None:
    estimate = estimate_rate([process_rate(measured(*values))], DEFAULT)
    assert min(values) * 0.999 <= estimate.images_per_second <= max(values) * 1.001
    assert 0.0 < estimate.low < estimate.images_per_second < estimate.high < math.inf


@given(st.lists(st.floats(-10, 10), min_size=1, max_size=60))
def test_the_effective_number_is_never_above_the_number(values: list[float]) -> None:
    assert 0.0 < effective_number(values) <= len(values)


def test_a_short_series_is_corrected_for_the_autocorrelation_that_it_hides() -> None:
    """Of AR(1) series with 0.5, thirty windows are worth ten; without the correction they would count for thirteen."""
    draw = random.Random(1)
    numbers = [effective_number(windows_of(draw, 0.05)) for _ in range(2000)]
    assert 9 < statistics.median(numbers) < 11


def test_a_drifting_series_is_worth_less_than_its_number() -> None:
    assert effective_number([float(index) for index in range(30)]) < 3
    assert effective_number([float(index % 2) for index in range(30)]) == 30


@given(rates, rates, st.floats(0, 0.3), st.floats(0, 0.3))
def test_a_ratio_is_the_inverse_of_the_ratio_taken_the_other_way(a: float, b: float, ea: float, eb: float) -> None:
    first, second = estimated(a, ea), estimated(b, eb)
    there, back = rate_ratio(first, second), rate_ratio(second, first)
    assert there.value * back.value == pytest.approx(1)
    assert there.low * back.high == pytest.approx(1)
    assert there.low <= there.value <= there.high


def test_errors_of_a_ratio_combine_in_quadrature() -> None:
    after, before = estimated(200.0, 0.03), estimated(100.0, 0.04)
    assert rate_ratio(after, before).high == pytest.approx(2 * math.exp(INTERVAL_Z * 0.05))


@pytest.mark.parametrize(
    ("rate", "tied"), [(1000.0, True), (1067.0, True), (1068.0, False), (937.0, True), (936.0, False)]
)
def test_two_are_tied_where_the_interval_of_the_ratio_contains_one(rate: float, tied: bool) -> None:
    """With 2 % each, known with 8 degrees of freedom, the interval reaches exp(2.306 x 0.02 x sqrt(2)) = 1.0674."""
    after, before = (estimate_rate([one(value)], DEFAULT) for value in (rate, 1000.0))
    assert rate_ratio(after, before).is_tie is tied


def test_two_rates_share_what_is_known_of_the_variance_between_processes() -> None:
    """Twice the same doubtful variance is no better known than once; two independent ones are."""
    shared = rate_ratio(estimate_rate([one(1.0)], DEFAULT), estimate_rate([one(1.0)], DEFAULT))
    assert shared.high == pytest.approx(math.exp(student_t(8) * 0.02 * math.sqrt(2)))
    assert combined_df([(1.0, 8.0), (1.0, 8.0)]) == 16
    assert combined_df([(1.0, 8.0), (0.0, 1.0)]) == 8


def test_repeats_are_taken_together_by_their_geometric_mean() -> None:
    estimate = estimate_rate([one(100.0), one(400.0)], DEFAULT)
    assert estimate.images_per_second == pytest.approx(200.0)
    assert estimate.standard_error == pytest.approx(0.02 / math.sqrt(2))


def test_without_repeats_the_stated_default_is_what_processes_differ_by() -> None:
    assert between_processes([[one(1000.0)], [one(3000.0)], []]) == BetweenProcess(
        sd=pytest.approx(DEFAULT_BETWEEN_PROCESS_SD), repeats=0
    )


def test_few_repeats_move_the_default_a_little_and_many_replace_it() -> None:
    noisy = [one(1000 * math.exp(0.05)), one(1000 * math.exp(-0.05))]
    few, many = between_processes([noisy]), between_processes([noisy] * 500)
    assert (few.repeats, many.repeats) == (1, 500)
    assert few.sd == pytest.approx(math.sqrt((8 * 0.02**2 + 0.005) / 9))
    assert many.sd == pytest.approx(math.sqrt(0.005), rel=0.02)


def test_noise_within_a_process_is_not_counted_between_processes_again() -> None:
    noisy = [one(1000 * math.exp(0.05), error=0.1), one(1000 * math.exp(-0.05), error=0.1)]
    assert between_processes([noisy] * 500).sd < 0.005


def test_a_ratio_must_stand_out_more_among_many() -> None:
    """1.08 is beyond its interval: enough for one comparison, not for a hundred."""
    ratio = rate_ratio(estimate_rate([one(1080.0)], DEFAULT), estimate_rate([one(1000.0)], DEFAULT))
    assert ratio.excludes_one_among(1)
    assert not ratio.excludes_one_among(100)
    assert family_widening(1) == pytest.approx(1.0)


@pytest.mark.parametrize(("df", "t"), [(1, 12.706), (4, 2.776), (7, 2.365), (29, 2.045), (1e9, 1.960)])
def test_students_t_is_that_of_the_tables(df: float, t: float) -> None:
    assert student_t(df) == pytest.approx(t, abs=0.002)
