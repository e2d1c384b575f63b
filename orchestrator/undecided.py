"""Who may still be the winner, given what repeats could change: the leader of a ranking, and its challengers."""

import math

from orchestrator.ranking import RankBy, Ranking, Standing
from orchestrator.statistics import INTERVAL_Z, rate_ratio

PRACTICALLY_EQUAL = 0.02
"""Two speeds whose ratio lies within that of 1, with all of its interval, need no telling apart."""

ASSUMED_SEED_SD = 0.005
"""How far an accuracy moves from seed to seed, before repeats tell it: 0.2 to 2.5 points were seen."""

ASSUMED_DF = 4
"""Repeats that the assumption is worth."""


def undecided(ranking: Ranking, rank_by: RankBy, seed_sd: float | None) -> list[Standing]:
    """The leader and then its challengers, the strongest first; empty where the first place is decided.

    A challenger may be faster than the leader, by the 95 % interval of their ratio, is not known to be practically
    equal, and may be accurate enough. What more seeds cannot change, the sampling error of an accuracy, does not count.
    """
    alive = [standing for standing in ranking.standings if not standing.learned_nothing]
    if len(alive) < 2:
        return []
    leader, others = alive[0], alive[1:]
    sd = _seed_sd(ranking, seed_sd)
    if ranking.scored and rank_by is RankBy.ACCURACY:
        found = [(reach, other) for other in others if (reach := _accuracy_reach(leader, other, ranking, sd)) > 0]
    else:
        found = [(reach, other) for other in others if (reach := _speed_reach(leader, other)) > 0]
        if ranking.scored and rank_by is RankBy.FASTEST_ACCURATE:
            found = [entry for entry in found if _may_be_within(entry[1], alive, ranking, sd)]
            found += _doubted_by(leader, alive, ranking, sd)
    found.sort(key=lambda entry: -entry[0])
    return [leader, *dict.fromkeys(other for _, other in found)] if found else []


def _speed_reach(leader: Standing, other: Standing) -> float:
    """How much faster than the leader it may be, in logarithms; 0 where it cannot be, or where that makes no odds."""
    if leader.rate is None or other.rate is None:
        return 0.0
    ratio = rate_ratio(other.rate, leader.rate)
    is_equal = ratio.low > 1 - PRACTICALLY_EQUAL and ratio.high < 1 + PRACTICALLY_EQUAL
    return 0.0 if is_equal else max(0.0, math.log(ratio.high))


def _accuracy_reach(leader: Standing, other: Standing, ranking: Ranking, sd: float) -> float:
    """How much more accurate it may be; 0 where it cannot be, or where the two are within the tolerance for sure."""
    gap, noise = _gap(leader, other), _noise(leader, other, sd)
    return 0.0 if gap + noise <= ranking.accuracy_margin else max(0.0, noise - gap)


def _may_be_within(standing: Standing, alive: list[Standing], ranking: Ranking, sd: float) -> bool:
    best = _most_accurate(alive)
    return standing is best or _gap(best, standing) <= ranking.accuracy_margin + _noise(best, standing, sd)


def _doubted_by(leader: Standing, alive: list[Standing], ranking: Ranking, sd: float) -> list[tuple[float, Standing]]:
    """The most accurate one, where the leader may be beyond the tolerance of it; it comes after all challengers."""
    best = _most_accurate(alive)
    is_sure = leader is best or _gap(best, leader) + _noise(best, leader, sd) <= ranking.accuracy_margin
    return [] if is_sure else [(0.0, best)]


def _most_accurate(alive: list[Standing]) -> Standing:
    return max(alive, key=lambda standing: standing.accuracy or 0.0)


def _gap(above: Standing, below: Standing) -> float:
    return (above.accuracy or 0.0) - (below.accuracy or 0.0)


def _noise(one: Standing, other: Standing, sd: float) -> float:
    """Half of the 95 % interval of a difference that seeds alone give."""
    return INTERVAL_Z * sd * math.sqrt(1 / len(one.results) + 1 / len(other.results))


def _seed_sd(ranking: Ranking, known: float | None) -> float:
    """From seed to seed: the run's own, shrunk towards the assumption while the repeats are few (Smyth 2004)."""
    df = sum(len(standing.results) - 1 for standing in ranking.standings) if known is not None else 0
    own = known**2 * df if known is not None else 0.0
    return math.sqrt((ASSUMED_DF * ASSUMED_SEED_SD**2 + own) / (ASSUMED_DF + df))
