"""Strategies: pure proposals."""

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.strategy import (
    BudgetedStrategy,
    IsolatedStrategy,
    Pause,
    PlannedStrategy,
    RetryPolicy,
    Segment,
    SweepState,
    TrialKey,
    key_of,
)
from tests.builders import a_spec, an_outcome
from trainables.outcomes import TrialOutcome, TrialStatus

A, B = a_spec(lr=0.1), a_spec(lr=0.2)
RETRIES = RetryPolicy(lost_retries=2)


def state(*outcomes: TrialOutcome, in_flight: tuple[TrialKey, ...] = (), **more: float) -> SweepState:
    return SweepState(
        answered={key_of(outcome.spec): outcome for outcome in outcomes},
        in_flight=frozenset(in_flight),
        elapsed_seconds=more.get("elapsed_seconds", 0.0),
        gpu_seconds=more.get("gpu_seconds", 0.0),
    )


def test_a_plan_proposes_its_trials_in_order_then_waits_then_is_done() -> None:
    plan = PlannedStrategy.of([A, B], RETRIES)
    assert plan.propose(state()) == Segment(spec=A)
    assert plan.propose(state(in_flight=(key_of(A),))) == Segment(spec=B)
    assert plan.propose(state(an_outcome(A), in_flight=(key_of(B),))) is Pause.WAIT
    assert plan.propose(state(an_outcome(A), an_outcome(B))) is Pause.DONE


def test_a_lost_trial_is_tried_again_after_everything_new_and_in_a_fresh_process() -> None:
    plan = PlannedStrategy.of([A, B], RETRIES)
    lost = an_outcome(A, status=TrialStatus.LOST)
    assert plan.propose(state(lost)) == Segment(spec=B)
    assert plan.propose(state(lost, an_outcome(B))) == Segment(spec=A, attempt=2, fresh_process=True)


def test_tries_end_at_their_limit() -> None:
    plan = PlannedStrategy.of([A], RETRIES)
    assert isinstance(plan.propose(state(an_outcome(A, status=TrialStatus.LOST, attempts=2))), Segment)
    assert plan.propose(state(an_outcome(A, status=TrialStatus.LOST, attempts=3))) is Pause.DONE
    assert isinstance(plan.propose(state(an_outcome(A, status=TrialStatus.FAILED))), Segment)
    assert plan.propose(state(an_outcome(A, status=TrialStatus.FAILED, attempts=2))) is Pause.DONE


@given(st.sampled_from([status for status in TrialStatus if status not in (TrialStatus.LOST, TrialStatus.FAILED)]))
def test_no_other_ending_is_ever_tried_again(status: TrialStatus) -> None:
    assert not RetryPolicy(lost_retries=9, failed_retries=9).has_tries_left(an_outcome(A, status=status))


def test_a_replicate_is_another_trial_and_gets_a_fresh_process() -> None:
    again = a_spec(lr=0.1, replicate=1)
    plan = PlannedStrategy.of([A, again], RETRIES)
    assert again.trial_id == A.trial_id
    assert plan.propose(state(an_outcome(A))) == Segment(spec=again, fresh_process=True)


def test_isolation_gives_every_segment_a_fresh_process_and_changes_nothing_else() -> None:
    plan = IsolatedStrategy(inner=PlannedStrategy.of([A, B], RETRIES))
    assert plan.propose(state()) == Segment(spec=A, fresh_process=True)
    assert plan.propose(state(in_flight=(key_of(A),))) == Segment(spec=B, fresh_process=True)
    assert plan.propose(state(an_outcome(A), in_flight=(key_of(B),))) is Pause.WAIT


def test_a_spent_budget_starts_nothing_and_lets_what_runs_end() -> None:
    plan = BudgetedStrategy(inner=PlannedStrategy.of([A, B], RETRIES), gpu_seconds=10.0)
    assert plan.propose(state(gpu_seconds=9.9)) == Segment(spec=A)
    assert plan.propose(state(in_flight=(key_of(A),), gpu_seconds=10.0)) is Pause.WAIT
    assert plan.propose(state(gpu_seconds=10.0)) is Pause.DONE


@given(
    st.lists(st.integers(1, 40), unique=True, max_size=12),
    st.lists(st.sampled_from(list(TrialStatus)), min_size=12, max_size=40),
    st.integers(1, 4),
)
def test_every_trial_gets_a_final_outcome_and_none_runs_again_after_it(
    batch_sizes: list[int], endings: list[TrialStatus], at_once: int
) -> None:
    plan = PlannedStrategy.of([a_spec(batch_size=size) for size in batch_sizes], RETRIES)
    answered: dict[TrialKey, TrialOutcome] = {}
    in_flight: list[Segment] = []
    ending = iter(endings)
    while True:
        proposal = plan.propose(
            SweepState(
                answered=answered,
                in_flight=frozenset(key_of(segment.spec) for segment in in_flight),
                elapsed_seconds=0,
                gpu_seconds=0,
            )
        )
        if isinstance(proposal, Segment):
            before = answered.get(key_of(proposal.spec))
            assert before is None or RETRIES.has_tries_left(before)
            assert proposal.attempt == (before.attempts + 1 if before else 1)
            in_flight.append(proposal)
        if proposal is Pause.DONE:
            break
        if proposal is Pause.WAIT or len(in_flight) == at_once:
            segment = in_flight.pop(0)
            status = next(ending, TrialStatus.COMPLETED)
            answered[key_of(segment.spec)] = an_outcome(segment.spec, status=status, attempts=segment.attempt)
    assert answered.keys() == set(plan.keys)
    assert not any(map(RETRIES.has_tries_left, answered.values()))
