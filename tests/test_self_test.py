"""The self-test: what it finds right and wrong, by an instrument that takes no time; and once for real."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from click.testing import CliRunner
from torch.utils.data import DataLoader

from orchestrator import doctor
from orchestrator.self_test import ThisProcess, self_test
from orchestrator.self_test_checks import Check, KnownOutcome
from orchestrator.self_test_trials import (
    COMPILED,
    SLOW_COMPILE,
    SLOW_DATA,
    SLOW_STEP,
    KnownTrial,
)
from orchestrator.self_test_words import check_mapping, summary_lines, table_lines
from trainables.delay_account import Delay, DelayAccount, DelayedWork, read_delays
from trainables.known_delays import slow_data, slow_model
from trainables.measurements import CompileMeasurement, DiagnosisMeasurement, ThroughputMeasurement
from trainables.outcomes import DeviceFacts, Durations, TrialOutcome, TrialStatus
from trainables.queued_device import QueueTiming, time_queued_device
from trainables.specs import CompileMode

OVERSLEPT = 1.01
"""A sleep takes a little longer than it was asked to."""
COMPILER_SECONDS = 0.75
IDLE_RATE = 50_000.0
"""Images per second of a model, or a loader, without a delay."""


@dataclass
class FakeInstrument:
    """Every trial as arithmetic has it, but for `wrong` numbers."""

    wrong: dict[str, float] = field(default_factory=dict)
    """Factors on what is measured, by column."""
    status: TrialStatus = TrialStatus.COMPLETED
    ran: list[KnownTrial] = field(default_factory=list)

    def time_queue(self) -> QueueTiming:
        timing = time_queued_device()
        return replace(timing, synchronized_rate=timing.synchronized_rate * self.wrong.get("queue", 1.0))

    def run(self, trial: KnownTrial) -> KnownOutcome:
        self.ran.append(trial)
        spec = trial.spec(data_account="data", model_account="model")
        if self.status is not TrialStatus.COMPLETED:
            ended = TrialOutcome(spec=spec, status=self.status, status_reason="there is no g++")
            return KnownOutcome(trial=trial, outcome=ended, data=[], model=[])
        step_seconds = OVERSLEPT * trial.step_seconds or trial.batch_size / IDLE_RATE
        load_seconds = OVERSLEPT * trial.image_seconds * trial.batch_size / max(1, trial.num_workers)
        windows = trial.whole_windows - int(self.wrong.get("lost_windows", 0))
        outcome = TrialOutcome(
            spec=spec,
            status=TrialStatus.COMPLETED,
            device=DeviceFacts(device="cpu"),
            throughput=self._windows(trial, windows, max(step_seconds, load_seconds), "images_per_second"),
            diagnosis=DiagnosisMeasurement(
                compute=self._windows(trial, 2, step_seconds, "compute_images_per_second"),
                loader=self._windows(
                    trial, 2, load_seconds or trial.batch_size / IDLE_RATE, "loader_images_per_second"
                ),
            )
            if trial.diagnosed
            else None,
            compilation=self._compilation(trial),
            durations=Durations(
                train_seconds=10.0,
                evaluation_seconds=self._evaluated_seconds(trial) * self.wrong.get("evaluation_seconds", 1.0),
                trial_seconds=20.0,
            ),
        )
        return KnownOutcome(trial=trial, outcome=outcome, data=self._made(trial), model=self._slept(trial))

    def _made(self, trial: KnownTrial) -> list[Delay]:
        """The first image, the training's batches, and as many for the loader alone."""
        if not trial.image_seconds:
            return []
        batches = [trial.batch_size] * (2 * trial.epochs * trial.steps_per_epoch)
        seconds = OVERSLEPT * trial.image_seconds
        return [Delay(DelayedWork.LOADED, images, images * seconds) for images in (1, *batches)]

    def _windows(self, trial: KnownTrial, count: int, step_seconds: float, column: str) -> ThroughputMeasurement | None:
        seconds = 2 * step_seconds / self.wrong.get(column, 1.0)
        if count < 1:
            return None
        return ThroughputMeasurement(
            window_images=(2 * trial.batch_size,) * count, window_seconds=(seconds,) * count, measured_on="training"
        )

    def _compilation(self, trial: KnownTrial) -> CompileMeasurement | None:
        if trial.compile is CompileMode.OFF:
            return None
        extra = OVERSLEPT * trial.compile_seconds * self.wrong.get("compile_seconds", 1.0)
        return CompileMeasurement(compile_seconds=COMPILER_SECONDS + extra)

    def _evaluated_seconds(self, trial: KnownTrial) -> float:
        return OVERSLEPT * trial.evaluation_seconds * trial.evaluation_batches

    def _slept(self, trial: KnownTrial) -> list[Delay]:
        compiled = [Delay(DelayedWork.COMPILED, 0, OVERSLEPT * trial.compile_seconds)]
        step = Delay(DelayedWork.TRAINED, trial.batch_size, OVERSLEPT * trial.step_seconds)
        evaluation = Delay(DelayedWork.EVALUATED, trial.batch_size, OVERSLEPT * trial.evaluation_seconds)
        epoch = [step] * trial.steps_per_epoch + [evaluation] * (trial.evaluation_batches // trial.epochs)
        further = [step] * 5  # compute alone is measured after the last evaluation
        return (compiled if trial.compile is not CompileMode.OFF else []) + epoch * trial.epochs + further


def failed(checks: Sequence[Check]) -> list[tuple[str, str]]:
    return [(check.injected, check.column) for check in checks if not check.passed]


def test_an_instrument_that_measures_right_passes_in_every_column() -> None:
    checks = list(self_test(FakeInstrument()))
    assert failed(checks) == []
    assert {check.column for check in checks} == {
        "images_per_second",
        "loader_images_per_second",
        "compute_images_per_second",
        "bottleneck",
        "evaluation_seconds",
        "window_images",
        "compile_seconds",
    }


def test_the_truth_is_of_what_was_really_slept_and_both_are_shown() -> None:
    checks = [check for check in self_test(FakeInstrument()) if check.column == "loader_images_per_second"]
    assert [(check.nominal, check.expected) for check in checks] == [
        (250.0, pytest.approx(250 / OVERSLEPT)),
        (250.0, pytest.approx(250 / OVERSLEPT)),
        (500.0, pytest.approx(500 / OVERSLEPT)),
    ]


@pytest.mark.parametrize(
    ("wrong", "column", "injected"),
    [
        ({"loader_images_per_second": 1.06}, "loader_images_per_second", {trial.name for trial in SLOW_DATA}),
        ({"compute_images_per_second": 0.94}, "compute_images_per_second", {SLOW_STEP.name}),
        ({"evaluation_seconds": 1.06}, "evaluation_seconds", {SLOW_STEP.name}),
        ({"compile_seconds": 0.9}, "compile_seconds", {SLOW_COMPILE.name}),
        ({"lost_windows": 1}, "window_images", {SLOW_STEP.name, SLOW_COMPILE.name}),
        ({"queue": 100.0}, "images_per_second", {"device: a queue, on a clock of its own"}),
    ],
)
def test_a_number_that_is_wrong_fails_in_its_own_column_alone(
    wrong: dict[str, float], column: str, injected: set[str]
) -> None:
    found = failed(list(self_test(FakeInstrument(wrong))))
    assert {name for name, _ in found} == injected
    assert {name for _, name in found} == {column}


def test_an_image_too_few_fails_and_a_rate_five_percent_off_does_not() -> None:
    exact = Check(injected="x", column="window_images", expected=704.0, measured=703.0, largest_error=0.0)
    near = Check(injected="x", column="images_per_second", expected=250.0, measured=238.0)
    assert (exact.passed, near.passed) == (False, True)


def test_a_verdict_that_is_wrong_or_missing_fails() -> None:
    blank = Check(injected="x", column="bottleneck", expected="data")
    assert [replace(blank, measured=verdict).passed for verdict in ("data", "compute", None)] == [True, False, False]


def test_nothing_measured_is_no_pass() -> None:
    assert not Check(injected="x", column="images_per_second", expected=250.0).passed
    assert not Check(injected="x", column="images_per_second").passed


def test_what_cannot_run_here_is_not_tested_and_what_fails_has_failed() -> None:
    unsupported = list(self_test(FakeInstrument(status=TrialStatus.UNSUPPORTED)))[1:]
    assert all(check.skipped and check.fault == "there is no g++" for check in unsupported)
    broken = list(self_test(FakeInstrument(status=TrialStatus.FAILED)))[1:]
    assert not any(check.skipped or check.passed for check in broken)
    assert [check.injected for check in broken] == [
        *(trial.name for trial in SLOW_DATA),
        SLOW_STEP.name,
        COMPILED.name,
    ]


def test_a_missing_wait_would_have_been_caught() -> None:
    """B01: the same timing without the wait says a hundred times too much."""
    timing = time_queued_device()
    assert timing.synchronized_rate == pytest.approx(timing.true_rate, rel=0.001)
    assert timing.unsynchronized_rate == pytest.approx(100 * timing.true_rate, rel=0.001)


def test_the_table_says_what_was_injected_where_it_shows_and_how_wrong_it_is() -> None:
    checks = list(self_test(FakeInstrument({"compile_seconds": 0.9})))
    lines = list(table_lines(checks))
    assert lines.count(SLOW_STEP.name) == 1
    (row,) = [line for line in lines if line.startswith("  compile_seconds")]
    assert row.split() == ["compile_seconds", "5", "5.05", "4.545", "−10.0", "%", "FAILED"]
    summary = "\n".join(summary_lines(checks, load=3.5, cpus=2))
    assert f"{len(checks) - 1} passed, 1 failed" in summary
    assert "3.5 processes wanted its 2 cores" in summary
    assert "a queue, on a clock of its own: without that care the rate would be 100 times as high" in summary


def test_checks_are_strict_json() -> None:
    checks = list(self_test(FakeInstrument(status=TrialStatus.UNSUPPORTED)))
    mappings = [check_mapping(check) for check in checks]
    assert json.loads(json.dumps(mappings, allow_nan=False)) == mappings
    assert [mapping["passed"] for mapping in mappings] == [True, None, None, None, None, None]


def test_an_account_keeps_what_was_slept_in_order(tmp_path: Any) -> None:
    path = str(tmp_path / "account")
    assert read_delays(path) == []
    account = DelayAccount(path)
    account.sleep(DelayedWork.TRAINED, 32, 0.0)
    account.sleep(DelayedWork.EVALUATED, 8, 0.0)
    assert [(delay.work, delay.images) for delay in read_delays(path)] == [
        (DelayedWork.TRAINED, 32),
        (DelayedWork.EVALUATED, 8),
    ]
    assert all(delay.seconds >= 0 for delay in read_delays(path))


@pytest.mark.parametrize("trial", [*SLOW_DATA, SLOW_STEP, COMPILED, SLOW_COMPILE], ids=lambda trial: trial.name)
def test_the_real_trials_measure_in_the_training_itself(trial: KnownTrial) -> None:
    assert 0 < trial.protocol().windows <= trial.whole_windows


def test_the_images_of_a_real_training_are_those_that_its_model_took() -> None:
    """For real, with no delay but what makes two steps a window; no time is judged."""
    quick = replace(SLOW_STEP, step_seconds=0.026, evaluation_seconds=0.0, diagnosed=False)
    known = ThisProcess().run(quick)
    assert known.outcome.status is TrialStatus.COMPLETED
    assert known.outcome.throughput is not None
    assert sum(known.outcome.throughput.window_images) == quick.whole_windows * 2 * quick.batch_size
    assert sum(delay.images for delay in known.trained) == quick.epochs * quick.steps_per_epoch * quick.batch_size


@pytest.mark.parametrize("workers", [0, 2])
def test_a_slow_data_set_sleeps_for_every_image_in_whichever_process(tmp_path: Any, workers: int) -> None:
    account = str(tmp_path / "account")
    train, _ = slow_data(train_images=8, seconds_per_image=1e-6, account=account)
    batches = list(
        DataLoader(train, batch_size=4, num_workers=workers, multiprocessing_context="fork" if workers else None)
    )
    assert [labels.tolist() for _, labels in batches] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert [(delay.work, delay.images) for delay in read_delays(account)] == [(DelayedWork.LOADED, 4)] * 2
    assert all(delay.seconds >= 4e-6 for delay in read_delays(account))


def test_the_slow_entries_can_be_used_without_an_account() -> None:
    train, validation = slow_data(train_images=4)
    image, label = train[3]
    assert (tuple(image.shape), label, len(validation)) == ((1, 8, 8), 3, 16)
    assert slow_model()(image[None]).shape == (1, 10)


@pytest.mark.slow
def test_the_real_self_test_tells_every_number_and_every_image() -> None:
    """No time is judged here: the machine that runs the tests may be busy."""
    result = CliRunner().invoke(doctor.main, ["--self-test", "--json"])
    checks = json.loads(result.stdout.splitlines()[-1])["self_test"]
    tested = [check for check in checks if check["passed"] is not None]
    assert all(check["measured"] is not None for check in tested)
    images = [check for check in tested if check["column"] == "window_images"]
    assert images
    assert all(check["measured"] == check["expected"] == check["nominal"] for check in images)
    assert {check["injected"] for check in tested} >= {*(trial.name for trial in SLOW_DATA), SLOW_STEP.name}
