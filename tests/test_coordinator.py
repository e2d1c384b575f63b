"""The coordinator: what is in flight, recorded and shown."""

from pathlib import Path

from orchestrator.coordinator import Coordinator
from orchestrator.ledger import Ledger
from orchestrator.live import QuietView
from orchestrator.progress import RunningTrial, SweepProgress, View
from orchestrator.strategy import Pause, PlannedStrategy, RetryPolicy, Segment, SweepState, key_of
from tests.builders import a_spec, an_outcome
from trainables.outcomes import DeviceFacts, TrialOutcome, TrialStatus
from trainables.specs import TrialSpec

A, B = a_spec(lr=0.1), a_spec(lr=0.2)
GPU = DeviceFacts(device="NVIDIA H200")


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Recorder(QuietView):
    def __init__(self) -> None:
        self.lines: list[str] = []

    def started(self, trial: RunningTrial, progress: SweepProgress) -> None:
        self.lines.append(f"start {trial.spec.config.lr} on {trial.node}")

    def finished(self, outcome: TrialOutcome, progress: SweepProgress, *, final: bool) -> None:
        self.lines.append(f"{outcome.status} {progress.answered}/{progress.planned} final={final}")


class Broken(QuietView):
    def finished(self, outcome: TrialOutcome, progress: SweepProgress, *, final: bool) -> None:
        raise RuntimeError("drawing failed")


def a_coordinator(
    tmp_path: Path, view: View | None = None, known: tuple[TrialOutcome, ...] = ()
) -> tuple[Coordinator, Ledger, Clock]:
    ledger = Ledger.create(str(tmp_path), "run")
    ledger.write_space("")
    clock = Clock()
    retries = RetryPolicy()
    coordinator = Coordinator(
        ledger=ledger,
        planned=[A, B],
        strategy=PlannedStrategy.of([A, B], retries),
        retries=retries,
        known=known,
        view=view or QuietView(),
        clock=clock,
    )
    return coordinator, ledger, clock


def take(coordinator: Coordinator) -> Segment:
    segment = coordinator.next()
    assert isinstance(segment, Segment)
    return segment


def test_an_outcome_is_stored_before_it_is_shown(tmp_path: Path) -> None:
    coordinator, ledger, _ = a_coordinator(tmp_path, Broken())
    coordinator.finished(take(coordinator), an_outcome(A))
    assert [outcome.spec for outcome in ledger.outcomes()] == [A]


def test_a_view_that_fails_does_not_end_the_sweep(tmp_path: Path) -> None:
    coordinator, _, _ = a_coordinator(tmp_path, Broken())
    coordinator.finished(take(coordinator), an_outcome(A))
    assert take(coordinator).spec == B


def test_a_dead_worker_is_recorded_with_where_it_ran_and_tried_again(tmp_path: Path) -> None:
    recorder = Recorder()
    coordinator, ledger, clock = a_coordinator(tmp_path, recorder)
    segment = take(coordinator)
    clock.now = 3.0
    coordinator.started(segment, node="n1", accelerator_ids=("2",), device=GPU)
    clock.now = 5.0
    coordinator.died(segment, TrialStatus.LOST, "killed")
    (lost,) = ledger.outcomes()
    assert (lost.status, lost.status_reason, lost.device, lost.placement.node) == ("lost", "killed", GPU, "n1")
    assert lost.placement.accelerator_ids == ("2",)
    assert lost.durations.trial_seconds == 2.0
    assert recorder.lines == ["start 0.1 on n1", "lost 0/2 final=False"]
    coordinator.finished(take(coordinator), an_outcome(B))
    assert take(coordinator).attempt == 2


def test_the_death_that_follows_a_reported_outcome_is_none(tmp_path: Path) -> None:
    coordinator, ledger, _ = a_coordinator(tmp_path)
    segment = take(coordinator)
    coordinator.finished(segment, an_outcome(A, status=TrialStatus.OUT_OF_MEMORY))
    coordinator.died(segment, TrialStatus.LOST, "its process was retired")
    assert [outcome.status for outcome in ledger.outcomes()] == ["out_of_memory"]


def test_neighbours_are_the_most_others_on_the_node(tmp_path: Path) -> None:
    coordinator, ledger, _ = a_coordinator(tmp_path)
    first, second = take(coordinator), take(coordinator)
    coordinator.started(first, node="n1", accelerator_ids=("0",), device=GPU)
    coordinator.started(second, node="n1", accelerator_ids=("1",), device=GPU)
    coordinator.finished(second, an_outcome(B))
    coordinator.finished(first, an_outcome(A))
    assert [outcome.placement.neighbours for outcome in ledger.outcomes()] == [1, 1]


def test_trials_on_two_nodes_are_no_neighbours(tmp_path: Path) -> None:
    coordinator, ledger, _ = a_coordinator(tmp_path)
    for node in ("n1", "n2"):
        coordinator.started(take(coordinator), node=node, accelerator_ids=("0",), device=GPU)
    for segment in (Segment(spec=A), Segment(spec=B)):
        coordinator.finished(segment, an_outcome(segment.spec))
    assert [outcome.placement.neighbours for outcome in ledger.outcomes()] == [0, 0]


def test_what_is_known_is_not_run_again(tmp_path: Path) -> None:
    coordinator, _, _ = a_coordinator(tmp_path, known=(an_outcome(A),))
    assert coordinator.not_run() == [B]
    assert take(coordinator).spec == B
    assert coordinator.next() is Pause.WAIT
    assert coordinator.progress.answered == coordinator.progress.answered_before == 1


def test_the_time_left_follows_the_pace_of_this_run_alone(tmp_path: Path) -> None:
    coordinator, _, clock = a_coordinator(tmp_path)
    assert coordinator.progress.seconds_left is None
    segment = take(coordinator)
    clock.now = 8.0
    coordinator.finished(segment, an_outcome(A))
    assert coordinator.progress.seconds_left == 8.0


def test_an_overdue_trial_is_named(tmp_path: Path) -> None:
    coordinator, _, clock = a_coordinator(tmp_path)
    first = take(coordinator)
    coordinator.started(first, node="n1", accelerator_ids=(), device=GPU)
    clock.now = 10.0
    coordinator.started(take(coordinator), node="n1", accelerator_ids=(), device=GPU)
    clock.now = 12.0
    assert coordinator.overdue(5.0) == [first]


class TestAStrategyThatPlansMore:
    """`--repeats auto` adds repeats to the trials that the sweep began with."""

    AGAIN = a_spec(lr=0.1, replicate=1)

    class Adding:
        def __init__(self, *specs: TrialSpec) -> None:
            self.specs = specs

        def propose(self, state: SweepState) -> Segment | Pause:
            left = (spec for spec in self.specs if key_of(spec) not in {*state.answered, *state.in_flight})
            found = next(left, None)
            return Segment(spec=found) if found else Pause.DONE

    def begun(self, tmp_path: Path, *specs: TrialSpec, known: tuple[TrialOutcome, ...] = ()) -> Coordinator:
        ledger = Ledger.create(str(tmp_path), "run")
        ledger.write_space("")
        return Coordinator(
            ledger=ledger,
            planned=[A],
            strategy=self.Adding(*specs),
            retries=RetryPolicy(),
            known=known,
            view=QuietView(),
            clock=Clock(),
        )

    def test_shows_and_lists_them_from_when_they_are_proposed(self, tmp_path: Path) -> None:
        coordinator = self.begun(tmp_path, A, self.AGAIN)
        coordinator.finished(take(coordinator), an_outcome(A))
        assert (coordinator.progress.planned, coordinator.not_run()) == (1, [])
        assert not coordinator.is_done()
        assert take(coordinator).spec == self.AGAIN
        assert (coordinator.progress.planned, coordinator.not_run()) == (2, [self.AGAIN])
        assert coordinator.is_done()

    def test_counts_those_of_an_earlier_run_as_done(self, tmp_path: Path) -> None:
        known = (an_outcome(A), an_outcome(self.AGAIN), an_outcome(B))
        progress = self.begun(tmp_path, A, known=known).progress
        assert (progress.planned, progress.answered, progress.answered_before) == (2, 2, 2)
