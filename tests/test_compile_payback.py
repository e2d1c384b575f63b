"""After how much training compiling has paid for itself, in epochs and in images."""

import pytest

from orchestrator.answer import build_report
from orchestrator.answer_words import answer_sentences
from orchestrator.compile_payback import Payback, payback
from tests.built_outcomes import completed, config, spec
from trainables.measurements import CompileMeasurement
from trainables.outcomes import Durations, TrialOutcome
from trainables.specs import MeasurementProtocol

STEPS = MeasurementProtocol(max_steps=100)


def compiled(rate: float, seconds: float | None = 8.0, **asked: MeasurementProtocol) -> TrialOutcome:
    measurement = CompileMeasurement(compile_seconds=seconds)
    return completed(spec(config(compile="default"), **asked), rate=rate, compilation=measurement)


def payback_of(eager: TrialOutcome, other: TrialOutcome) -> Payback | None:
    (pair,) = build_report([eager, other]).pairs
    return payback(pair)


def test_compiling_pays_for_itself_after_its_seconds_over_those_saved() -> None:
    """An eager epoch takes 1.5 s; twice as fast saves 0.75 s of it, and half a millisecond of an image's."""
    earned = payback_of(completed(), compiled(2000.0))
    assert earned is not None
    assert earned.epochs == pytest.approx(8 / 0.75)
    assert earned.images == pytest.approx(8 / 0.0005)
    assert earned.compile_seconds == 8.0


@pytest.mark.parametrize(
    ("eager", "other"),
    [
        (completed(), compiled(500.0)),
        (completed(), compiled(1010.0)),
        (completed(), compiled(2000.0, seconds=None)),
        (completed(), completed(spec(config("bf16")), rate=2000.0)),
    ],
)
def test_compiling_that_is_not_clearly_faster_or_was_not_timed_never_pays(
    eager: TrialOutcome, other: TrialOutcome
) -> None:
    assert payback_of(eager, other) is None


@pytest.mark.parametrize(
    ("eager", "other"),
    [
        (completed(spec(protocol=STEPS)), compiled(2000.0, protocol=STEPS)),
        (completed(durations=Durations()), compiled(2000.0)),
    ],
)
def test_where_epochs_were_not_trained_or_not_timed_images_alone_are_known(
    eager: TrialOutcome, other: TrialOutcome
) -> None:
    earned = payback_of(eager, other)
    assert earned is not None
    assert earned.epochs is None
    assert earned.images == pytest.approx(16_000)


def test_the_answer_says_when_compiling_the_winner_has_paid() -> None:
    (answer,) = build_report([completed(), compiled(2000.0)]).answers
    assert "Compiling it took 8.0 s, which it has earned back after 10.7 epochs (16,000 images)." in answer_sentences(
        answer
    )
    (eager_wins,) = build_report([completed(), compiled(500.0)]).answers
    assert not any("Compiling" in sentence for sentence in answer_sentences(eager_wins))
