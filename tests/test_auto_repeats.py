"""`--repeats auto`, replayed on generated records in simulated time."""

import math
import random
import re
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.interval_simulation import measured, windows_of
from orchestrator.auto_repeats import AutoRepeats, ExtraBudget
from orchestrator.ranking import RankBy
from orchestrator.results import results_of
from orchestrator.strategy import PlannedStrategy, RetryPolicy, Segment, TrialKey
from tests.builders import a_spec, an_outcome
from tests.replaying import Replay
from trainables.outcomes import Durations, TrialOutcome, TrialStatus

MEASURING = Path(__file__).resolve().parents[1] / "docs" / "measuring.md"

RATES = (1.0, 0.97, 0.96, 0.95, 0.80, 0.78, 0.75, 0.70, 0.65, 0.60, 0.55, 0.50)
"""True rates by configuration: the first is the fastest, and three are near it."""

SPECS = [a_spec(batch_size=64 + index, lr=0.001 * (1 + index)) for index in range(len(RATES))]
RETRIES = RetryPolicy()


def auto(budget: ExtraBudget | None = None) -> AutoRepeats:
    return AutoRepeats(
        first=PlannedStrategy.of(SPECS, RETRIES),
        retries=RETRIES,
        rank_by=RankBy.FASTEST_ACCURATE,
        accuracy_tolerance=0.005,
        budget=budget or ExtraBudget(),
    )


def record(segment: Segment, *, seed: int = 0, process_sd: float = 0.015) -> TrialOutcome:
    """The same whenever it is run: its noise follows from the seed, the configuration and the replicate."""
    spec = segment.spec
    draw = random.Random(f"{seed} {spec.label}")
    rate = RATES[round(spec.config.lr / 0.001) - 1]
    logs = windows_of(draw, 0.01, level=math.log(1000 * rate) + draw.gauss(0.0, process_sd), count=10)
    durations = Durations(trial_seconds=30.0 + 1000 * spec.config.lr)
    outcome = an_outcome(spec, throughput=measured(logs), durations=durations)
    return replace(outcome, attempts=segment.attempt)


def fastest(records: dict[TrialKey, TrialOutcome]) -> float:
    """The learning rate of the configuration with the highest mean rate."""
    rates: dict[float, list[float]] = {}
    for result in results_of(records.values()):
        assert result.rate is not None
        rates.setdefault(result.outcome.spec.config.lr, []).append(result.rate.images_per_second)
    return max(rates, key=lambda lr: sum(rates[lr]) / len(rates[lr]))


def extras(replay: Replay) -> list[Segment]:
    return [segment for segment in replay.started if segment.spec.replicate > 0]


def seconds(replay: Replay, *, extra: bool) -> float:
    return sum(
        outcome.durations.trial_seconds for key, outcome in replay.answered.items() if (key.replicate > 0) == extra
    )


@pytest.mark.parametrize("workers", [1, 4])
def test_the_first_pass_is_done_before_anything_is_repeated_and_repeats_are_for_the_undecided(workers: int) -> None:
    replay = Replay(strategy=auto(), answer=record, workers=workers)
    replay.run()
    assert [segment.spec for segment in replay.started[:12]] == SPECS
    repeated = {segment.spec.config.lr for segment in extras(replay)}
    assert repeated <= {spec.config.lr for spec in SPECS[:4]}
    assert len(repeated) >= 2
    assert all(segment.fresh_process for segment in extras(replay))
    keys = [(segment.spec.trial_id, segment.spec.replicate) for segment in replay.started]
    assert len(set(keys)) == len(keys)


def test_it_finds_the_fastest_more_often_than_one_run_does_and_stays_in_its_budget() -> None:
    once, repeated = 0, 0
    for seed in range(60):
        replay = Replay(strategy=auto(), answer=lambda segment, seed=seed: record(segment, seed=seed), workers=2)
        replay.run()
        first = {key: outcome for key, outcome in replay.answered.items() if key.replicate == 0}
        once += fastest(first) == SPECS[0].config.lr
        repeated += fastest(replay.answered) == SPECS[0].config.lr
        assert seconds(replay, extra=True) <= 0.5 * seconds(replay, extra=False)
        assert all(segment.spec.replicate <= 4 for segment in extras(replay))
    assert repeated >= once + 6
    stated = re.search(r"named the fastest in (\d+), and `auto` in (\d+)", MEASURING.read_text())
    assert stated is not None
    assert stated.groups() == (str(once), str(repeated))


def test_a_decided_ranking_costs_nothing_more() -> None:
    def clear(segment: Segment) -> TrialOutcome:
        return an_outcome(segment.spec, rate=1e6 * segment.spec.config.lr**2)

    replay = Replay(strategy=auto(), answer=clear)
    replay.run()
    assert len(replay.started) == len(SPECS)


@pytest.mark.parametrize(
    ("budget", "most"),
    [(ExtraBudget(seconds_fraction=0.0), 0), (ExtraBudget(runs_each=1, seconds_fraction=9.0), 12), (ExtraBudget(), 6)],
)
def test_a_ranking_that_stays_undecided_ends_with_the_budget(budget: ExtraBudget, most: int) -> None:
    """All alike: 12 trials of 32 seconds, and repeats of as many."""
    replay = Replay(strategy=auto(budget), answer=lambda segment: an_outcome(segment.spec, rate=1000.0), workers=3)
    replay.run()
    assert len(extras(replay)) == most


def test_a_resumed_sweep_goes_on_where_it_was() -> None:
    whole = Replay(strategy=auto(), answer=record)
    whole.run()
    for stop in (5, 12, 14):
        begun = Replay(strategy=auto(), answer=record)
        begun.run(until=stop)
        resumed = Replay(strategy=auto(), answer=record, answered=begun.answered)
        resumed.run()
        assert resumed.answered == whole.answered


def test_a_lost_repeat_is_tried_again_and_a_failing_one_ends() -> None:
    def fragile(segment: Segment) -> TrialOutcome:
        if segment.spec.replicate == 1:
            return an_outcome(
                segment.spec,
                status=TrialStatus.LOST,
                attempts=segment.attempt,
                durations=Durations(trial_seconds=1.0),
            )
        return record(segment)

    replay = Replay(strategy=auto(), answer=fragile)
    replay.run()
    lost = [segment for segment in extras(replay) if segment.spec.replicate == 1]
    assert {segment.attempt for segment in lost} == {1, 2, 3}
    assert any(segment.spec.replicate == 2 for segment in extras(replay))


def test_records_of_other_configurations_do_not_count() -> None:
    """A run whose space was cut down keeps its records, and neither ranks nor repeats them."""
    stranger = an_outcome(a_spec(lr=7.0), rate=1e6)
    key = TrialKey(stranger.spec.trial_id, 0)
    with_it = Replay(strategy=auto(), answer=record, answered={key: stranger})
    without = Replay(strategy=auto(), answer=record)
    with_it.run()
    without.run()
    assert with_it.started == without.started


def test_the_budget_is_said_in_words() -> None:
    assert str(ExtraBudget()) == (
        "up to 4 more runs each where the first place is undecided, for at most 50 % of the first runs' time"
    )
