"""`--repeats auto`: every configuration once, then more runs where the first place is undecided, within a budget.

Which one next follows LUCB (Kalyanakrishnan, Tewari, Auer and Stone 2012): of the leader and its strongest challenger,
the one with fewer runs. The state is the records alone, so a resumed sweep goes on where it was.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from orchestrator.matching import Matching
from orchestrator.ranking import RankBy, Standing, rank
from orchestrator.results import results_of
from orchestrator.strategy import Pause, PlannedStrategy, RetryPolicy, Segment, SweepState, TrialKey
from orchestrator.undecided import undecided
from trainables.outcomes import TrialOutcome


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtraBudget:
    """The most that is spent beyond one run of each configuration."""

    runs_each: int = 4
    seconds_fraction: float = 0.5
    """Of the trial seconds of the first runs, all together."""

    def __str__(self) -> str:
        return (
            f"up to {self.runs_each} more runs each where the first place is undecided, "
            f"for at most {self.seconds_fraction:.0%} of the first runs' time".replace("%", " %")
        )


@dataclass(slots=True)
class _Verdict:
    """The last ranking, since a strategy is asked far more often than a record is added."""

    records: list[TrialOutcome] = field(default_factory=list)
    contenders: list[Standing] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoRepeats:
    first: PlannedStrategy
    """Every configuration once."""
    retries: RetryPolicy
    rank_by: RankBy
    accuracy_tolerance: float
    budget: ExtraBudget = field(default_factory=ExtraBudget)
    _last: _Verdict = field(default_factory=_Verdict, init=False, compare=False, repr=False)

    def propose(self, state: SweepState) -> Segment | Pause:
        proposal = self.first.propose(replace(state, in_flight=state.in_flight.intersection(self.first.keys)))
        if proposal is not Pause.DONE:
            return proposal
        runs = self._runs(state)
        extra = next(self._retries(state), None) or next(self._repeats(state, runs), None)
        return extra or (Pause.WAIT if state.in_flight else Pause.DONE)

    def _runs(self, state: SweepState) -> dict[str, set[TrialKey]]:
        """Of each planned configuration, by trial id: what is answered and what is in flight."""
        runs: dict[str, set[TrialKey]] = {key.trial_id: set() for key in self.first.keys}
        for key in (*state.answered, *state.in_flight):
            if key.trial_id in runs:
                runs[key.trial_id].add(key)
        return runs

    def _retries(self, state: SweepState) -> Iterator[Segment]:
        ids = {key.trial_id for key in self.first.keys}
        for key, outcome in state.answered.items():
            is_extra = key.trial_id in ids and key.replicate > 0 and key not in state.in_flight
            if is_extra and self.retries.has_tries_left(outcome):
                yield Segment(spec=outcome.spec, attempt=outcome.attempts + 1, fresh_process=True)

    def _repeats(self, state: SweepState, runs: dict[str, set[TrialKey]]) -> Iterator[Segment]:
        """The runs that would help and can be afforded, the best first."""
        specs = {key.trial_id: spec for spec, key in zip(self.first.planned, self.first.keys, strict=True)}
        seconds = {key.trial_id: state.answered[key].durations.trial_seconds for key in self.first.keys}
        left = self.budget.seconds_fraction * sum(seconds.values()) - _spent(state, runs, seconds)
        for trial_id in self._candidates(state, runs):
            is_free = state.in_flight.isdisjoint(runs[trial_id])
            if is_free and len(runs[trial_id]) <= self.budget.runs_each and seconds[trial_id] <= left:
                number = 1 + max(key.replicate for key in runs[trial_id])
                yield Segment(spec=replace(specs[trial_id], replicate=number), fresh_process=True)

    def _candidates(self, state: SweepState, runs: dict[str, set[TrialKey]]) -> Iterator[str]:
        contenders = [standing.results[0].trial_id for standing in self._contenders(state, runs)]
        for challenger in contenders[1:]:
            yield from sorted((challenger, contenders[0]), key=lambda trial_id: len(runs[trial_id]))

    def _contenders(self, state: SweepState, runs: dict[str, set[TrialKey]]) -> list[Standing]:
        """Of the ranking with the most configurations; on which device a repeat runs is not the strategy's choice."""
        records = [outcome for key, outcome in state.answered.items() if key.trial_id in runs]
        last = self._last
        is_new = len(records) != len(last.records) or any(
            a is not b for a, b in zip(records, last.records, strict=True)
        )
        if is_new:
            matching = Matching(results_of(records))
            rankings, _ = rank(matching, self.rank_by, self.accuracy_tolerance, baseline=None)
            first = rankings[0] if rankings else None
            last.records = records
            last.contenders = undecided(first, self.rank_by, matching.seed_sd[first.key]) if first else []
        return last.contenders


def _spent(state: SweepState, runs: dict[str, set[TrialKey]], seconds: dict[str, float]) -> float:
    """Trial seconds of the repeats: those that ended, and what the ones in flight are expected to take."""
    spent = 0.0
    for trial_id, keys in runs.items():
        for key in keys:
            if key in state.in_flight:
                spent += seconds[trial_id]
            elif key.replicate > 0:
                spent += state.answered[key].durations.trial_seconds
    return spent
