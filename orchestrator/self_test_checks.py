"""What a known delay must show, and what was measured: the checks of the self-test, judged from a trial's outcome."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from orchestrator.bottleneck import Bottleneck, loop_rates
from orchestrator.self_test_trials import KnownTrial
from orchestrator.statistics import process_rate
from trainables.delay_account import Delay, DelayedWork, images_of, of_work, seconds_of
from trainables.measurements import ThroughputMeasurement
from trainables.outcomes import TrialOutcome, TrialStatus
from trainables.queued_device import QueueTiming

LARGEST_ERROR = 0.05
"""A fraction of the truth."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One number that is known before it is measured."""

    injected: str
    column: str
    """Where the delay must show: a column of the results."""
    expected: float | str | None = None
    """By arithmetic, from what was really slept: a sleep takes a little longer than it was asked to."""
    nominal: float | None = None
    """By arithmetic, from what was asked to be slept."""
    measured: float | str | None = None
    careless: float | None = None
    """What an account without this care would have said."""
    largest_error: float = LARGEST_ERROR
    fault: str | None = None
    """Why nothing was measured."""
    skipped: bool = False
    """Whether it could not be tested here, which is no failure; `fault` says why."""

    @property
    def error(self) -> float | None:
        """A signed fraction of what was expected; None where one of the two is no number."""
        if isinstance(self.measured, float) and isinstance(self.expected, float) and self.expected:
            return self.measured / self.expected - 1
        return None

    @property
    def passed(self) -> bool:
        if self.error is not None:
            return abs(self.error) <= self.largest_error
        return self.measured is not None and self.measured == self.expected


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownOutcome:
    """A trial of the self-test when it is over."""

    trial: KnownTrial
    outcome: TrialOutcome
    data: Sequence[Delay]
    """What the data set slept, in every process together."""
    model: Sequence[Delay]

    @property
    def trained(self) -> list[Delay]:
        """The steps of the training itself: those before the last evaluation."""
        return of_work(self.model[: self._training_end], DelayedWork.TRAINED)

    @property
    def trained_alone(self) -> list[Delay]:
        """The steps on one batch, after the training."""
        return of_work(self.model[self._training_end :], DelayedWork.TRAINED)

    @property
    def loaded(self) -> list[Delay]:
        """The batches of the training itself, and the image that is drawn before it to see what images are like."""
        return of_work(self.data, DelayedWork.LOADED)[: 1 + len(self.trained)]

    @property
    def loaded_alone(self) -> list[Delay]:
        """The batches of the loader alone, after the training."""
        return of_work(self.data, DelayedWork.LOADED)[1 + len(self.trained) :]

    @property
    def _training_end(self) -> int:
        works = [delay.work for delay in self.model]
        return len(works) - works[::-1].index(DelayedWork.EVALUATED) if DelayedWork.EVALUATED in works else 0


def slow_data_checks(known: KnownOutcome) -> Iterator[Check]:
    """With W workers, W images are made at a time: the loop cannot be faster, and should be no slower."""
    at_a_time = max(1, known.trial.num_workers)
    diagnosis = known.outcome.diagnosis
    blank = Check(
        injected=known.trial.name,
        column="images_per_second",
        expected=_images_per_second(known.loaded, at_a_time),
        nominal=at_a_time / known.trial.image_seconds,
    )
    yield replace(blank, measured=rate_of(known.outcome.throughput))
    yield replace(
        blank,
        column="loader_images_per_second",
        expected=_images_per_second(known.loaded_alone, at_a_time),
        measured=rate_of(diagnosis.loader if diagnosis else None),
    )
    yield _verdict_check(known, Bottleneck.DATA)


def slow_step_checks(known: KnownOutcome) -> Iterator[Check]:
    yield _rate_check(known, careless=_rate_over(known.outcome.durations.trial_seconds, known))
    diagnosis = known.outcome.diagnosis
    yield replace(
        _rate_check(known),
        column="compute_images_per_second",
        expected=_images_per_second(known.trained_alone),
        measured=rate_of(diagnosis.compute if diagnosis else None),
    )
    yield _verdict_check(known, Bottleneck.COMPUTE)
    evaluated = of_work(known.model, DelayedWork.EVALUATED)
    yield Check(
        injected=known.trial.name,
        column="evaluation_seconds",
        expected=seconds_of(evaluated),
        nominal=known.trial.evaluation_batches * known.trial.evaluation_seconds,
        measured=known.outcome.durations.evaluation_seconds,
    )
    yield images_check(known)


def slow_compile_checks(plain: Sequence[KnownOutcome], slow: KnownOutcome) -> Iterator[Check]:
    """The compiler's own time is the least that it took for the same model without the delay, in the same process."""
    own = [seconds for known in plain if (seconds := _compile_seconds(known.outcome)) is not None]
    whole = _compile_seconds(slow.outcome)
    yield Check(
        injected=slow.trial.name,
        column="compile_seconds",
        expected=seconds_of(of_work(slow.model, DelayedWork.COMPILED)),
        nominal=slow.trial.compile_seconds,
        measured=whole - min(own) if own and whole is not None else None,
    )
    yield _rate_check(slow, careless=_rate_over(slow.outcome.durations.train_seconds, slow))
    yield images_check(slow)


def images_check(known: KnownOutcome) -> Check:
    """Every image that the model took in after the warm-up lies in a window, exactly: such trainings have no rest."""
    protocol = known.outcome.spec.protocol
    steps = known.trained[protocol.warmup_steps :]
    measured = known.outcome.throughput
    return Check(
        injected=known.trial.name,
        column="window_images",
        expected=float(images_of(steps)),
        nominal=float(known.trial.whole_windows * protocol.window_steps * known.trial.batch_size),
        measured=float(sum(measured.window_images)) if measured else None,
        careless=float(known.trial.epochs * known.trial.steps_per_epoch * known.trial.batch_size),
        largest_error=0.0,
    )


def queue_checks(timing: QueueTiming) -> Iterator[Check]:
    yield Check(
        injected="device: a queue, on a clock of its own",
        column="images_per_second",
        expected=timing.true_rate,
        nominal=timing.true_rate,
        measured=timing.synchronized_rate,
        careless=timing.unsynchronized_rate,
    )


def bad_end_checks(*needed: KnownOutcome) -> list[Check]:
    """None where all that is needed completed; else one that says why nothing can be checked."""
    for known in needed:
        outcome = known.outcome
        if outcome.status is not TrialStatus.COMPLETED:
            check = Check(
                injected=known.trial.name,
                column="status",
                expected=TrialStatus.COMPLETED.value,
                measured=outcome.status.value,
                fault=outcome.status_reason,
                skipped=outcome.status is TrialStatus.UNSUPPORTED,
            )
            return [check]
    return []


def rate_of(throughput: ThroughputMeasurement | None) -> float | None:
    """Images per second as a report shows it."""
    return None if throughput is None else process_rate(throughput).images_per_second


def _rate_check(known: KnownOutcome, careless: float | None = None) -> Check:
    return Check(
        injected=known.trial.name,
        column="images_per_second",
        expected=_images_per_second(known.trained),
        nominal=known.trial.batch_size / known.trial.step_seconds,
        measured=rate_of(known.outcome.throughput),
        careless=careless,
    )


def _verdict_check(known: KnownOutcome, expected: Bottleneck) -> Check:
    throughput = known.outcome.throughput
    verdict = loop_rates(known.outcome, process_rate(throughput) if throughput else None).bottleneck
    return Check(
        injected=known.trial.name,
        column="bottleneck",
        expected=expected.value,
        measured=verdict.value if verdict else None,
    )


def _images_per_second(delays: Sequence[Delay], at_a_time: int = 1) -> float | None:
    """None where nothing was slept."""
    seconds = seconds_of(delays)
    return at_a_time * images_of(delays) / seconds if seconds else None


def _rate_over(seconds: float, known: KnownOutcome) -> float | None:
    return images_of(known.trained) / seconds if seconds else None


def _compile_seconds(outcome: TrialOutcome) -> float | None:
    return outcome.compilation.compile_seconds if outcome.compilation else None
