"""All that a report says, as one value: rankings, answers, pairs, findings, and what was not ranked or not run."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from orchestrator.accuracy_statistics import difference_noise
from orchestrator.baseline_choice import EAGER_FP32, Baseline
from orchestrator.comparison import MatchedPair, matched_pairs
from orchestrator.comparison_findings import interaction_findings, pair_findings, ranking_findings
from orchestrator.compile_payback import Payback, payback
from orchestrator.data_findings import data_findings
from orchestrator.findings import Finding, FindingKind
from orchestrator.knob_effects import KnobEffect, knob_effects
from orchestrator.knob_interactions import Interaction, interactions
from orchestrator.knob_order import knobs_order
from orchestrator.matching import Matching
from orchestrator.ranking import DEFAULT_ACCURACY_TOLERANCE, NotRanked, RankBy, Ranking, Standing, rank
from orchestrator.results import ComparisonKey, Result, results_of
from orchestrator.statistics import BetweenProcess, Ratio, rate_ratio
from orchestrator.trial_findings import trial_findings
from trainables.outcomes import TrialOutcome, TrialStatus
from trainables.specs import TrialSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Which configuration to use, for one comparison key; the winner's baseline says how much faster it is."""

    ranking: Ranking
    winner: Standing
    tied: tuple[Standing, ...]
    """The others of the first rank."""
    rival: Standing | None
    """The next in the order of the ranking, tied or not."""
    rival_speed: Ratio | None
    """The rival over the winner; None where there is none, or a rate is not known."""
    faster: "FasterByChance | None"
    payback: Payback | None
    """When compiling the winner has paid for itself; None where it is not compiled, or its eager twin was not run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FasterByChance:
    """The fastest that is clearly faster than the winner, and behind it for an accuracy that chance explains."""

    standing: Standing
    speed: Ratio
    """Over the winner."""
    accuracy_change: float
    accuracy_noise: float
    """Half of the 95 % interval of such a difference."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunReport:
    rank_by: RankBy
    accuracy_tolerance: float
    results: tuple[Result, ...]
    """Every outcome that counts: ranked ones in order of rank, then the others in the order of `not_ranked`."""
    rankings: tuple[Ranking, ...]
    answers: tuple[Answer, ...]
    """One for each ranking, in its order."""
    not_ranked: tuple[NotRanked, ...]
    not_run: tuple[TrialSpec, ...]
    pairs: tuple[MatchedPair, ...]
    effects: tuple[KnobEffect, ...]
    interactions: tuple[Interaction, ...]
    """Clearest first."""
    findings: tuple[Finding, ...]
    """Most important first."""
    between: Mapping[ComparisonKey, BetweenProcess]
    """How much rates differ from process to process, as every interval of the report includes it."""
    environment: Mapping[str, Any] = field(default_factory=dict)
    """What the run was started on, as its folder says; empty where it is not known."""

    @property
    def winner(self) -> Standing | None:
        """Of the ranking with the most configurations; None where nothing was ranked."""
        return self.answers[0].winner if self.answers else None

    @property
    def status_counts(self) -> dict[TrialStatus, int]:
        """Statuses that occur, in the order of their definition."""
        counts = Counter(result.outcome.status for result in self.results)
        return {status: counts[status] for status in TrialStatus if counts[status]}


def build_report(
    outcomes: Iterable[TrialOutcome],
    *,
    not_run: Sequence[TrialSpec] = (),
    rank_by: RankBy = RankBy.FASTEST_ACCURATE,
    accuracy_tolerance: float = DEFAULT_ACCURACY_TOLERANCE,
    baseline: Baseline | None = EAGER_FP32,
    environment: Mapping[str, Any] | None = None,
) -> RunReport:
    """The same report whatever the order of `outcomes`; `not_run` keeps its order, which is that of the plan."""
    matching = Matching(results_of(outcomes))
    rankings, not_ranked = rank(matching, rank_by, accuracy_tolerance, baseline)
    not_ranked = tuple(sorted(not_ranked, key=_by_status))
    pairs = matched_pairs(matching)
    effects = knob_effects(matching, pairs)
    dependent = interactions(effects)
    findings = [
        *trial_findings(matching),
        *data_findings(matching, pairs),
        *pair_findings(pairs),
        *interaction_findings(dependent),
        *(found for ranking in rankings for found in ranking_findings(ranking, rank_by, accuracy_tolerance)),
    ]
    ranked = [result for ranking in rankings for standing in ranking.standings for result in standing.results]
    return RunReport(
        rank_by=rank_by,
        accuracy_tolerance=accuracy_tolerance,
        results=(*ranked, *(entry.result for entry in not_ranked)),
        rankings=rankings,
        answers=tuple(_answer(ranking, pairs) for ranking in rankings),
        not_ranked=not_ranked,
        not_run=tuple(not_run),
        pairs=pairs,
        effects=effects,
        interactions=dependent,
        findings=tuple(sorted(findings, key=lambda found: _IMPORTANCE[found.kind])),
        between=matching.between,
        environment=environment or {},
    )


_IMPORTANCE = {kind: place for place, kind in enumerate(FindingKind)}
_STATUS_ORDER = {status: place for place, status in enumerate(TrialStatus)}


def _by_status(entry: NotRanked) -> tuple[int, tuple[tuple[float, str], ...], tuple[int, int]]:
    return _STATUS_ORDER[entry.result.outcome.status], knobs_order(entry.result.knobs), entry.result.seed_key


def _answer(ranking: Ranking, pairs: Sequence[MatchedPair]) -> Answer:
    winner, *others = ranking.standings
    rival = others[0] if others else None
    rates = (rival.rate, winner.rate) if rival else (None, None)
    return Answer(
        ranking=ranking,
        winner=winner,
        tied=ranking.leaders[1:],
        rival=rival,
        rival_speed=rate_ratio(rates[0], rates[1]) if rates[0] and rates[1] else None,
        faster=_faster_by_chance(winner, others),
        payback=next((earned for pair in pairs if pair.after in winner.results and (earned := payback(pair))), None),
    )


def _faster_by_chance(winner: Standing, others: Sequence[Standing]) -> FasterByChance | None:
    """Only a rule that puts accuracy before speed leaves one behind."""
    found = []
    for other in others:
        if winner.accuracy is None or other.accuracy is None or winner.rate is None or other.rate is None:
            continue
        images = winner.results[0].independent_images
        noise = difference_noise(winner.accuracy, other.accuracy, images, seed_sd=None)
        speed = rate_ratio(other.rate, winner.rate)
        change = other.accuracy - winner.accuracy
        if noise is not None and 0 < -change <= noise and speed.low > 1 and not other.learned_nothing:
            found.append(
                FasterByChance(standing=other, speed=speed, accuracy_change=change, accuracy_noise=noise),
            )
    return max(found, key=lambda faster: faster.speed.value, default=None)
