"""Results found by what they share: the repeats of a configuration, and the twin that differs in given knobs alone."""

import itertools
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence

from orchestrator.accuracy_statistics import pooled_seed_sd
from orchestrator.baseline_choice import Baseline
from orchestrator.results import ComparisonKey, Result, TaskKey
from orchestrator.statistics import BetweenProcess, ProcessRate, RateEstimate, between_processes, estimate_rate
from trainables.specs import KNOBS

LR = KNOBS.index("lr")

LR_TOLERANCE = 0.05
"""How far a learning rate that people round may lie from the scaled one."""


class Matching:
    """All results of a report, indexed once; finding a twin costs the same whatever their number is."""

    def __init__(self, results: Iterable[Result]) -> None:
        self.results = tuple(results)
        self.configurations: defaultdict[tuple[ComparisonKey, tuple[object, ...]], list[Result]] = defaultdict(list)
        """Comparable or not, results that differ in seed and replicate alone."""
        self._unranked: defaultdict[tuple[TaskKey, tuple[object, ...]], list[Result]] = defaultdict(list)
        self._by_seed = {(result.key, result.knobs, result.seed_key): result for result in self.results}
        self._by_lr: defaultdict[object, list[Result]] = defaultdict(list)
        for result in self.results:
            self.configurations[result.key, result.knobs].append(result)
            if result.unranked_reason is not None:
                self._unranked[result.key.task, result.knobs].append(result)
            if is_comparable(result):
                self._by_lr[_but_lr(result, result.knobs)].append(result)
        for group in self._by_lr.values():
            group.sort(key=_lr)
        self.between: dict[ComparisonKey, BetweenProcess] = {}
        self.seed_sd: dict[ComparisonKey, float | None] = {}
        """How much accuracy moves from seed to seed; None where no configuration has several."""
        self._estimate_spreads()
        self._rates = {
            result: estimate_rate([result.rate], self.between[result.key]) for result in self.results if result.rate
        }

    def rate(self, result: Result) -> RateEstimate:
        """Of one trial alone. Raises `KeyError` where its rate was not measured."""
        return self._rates[result]

    def rate_of_all(self, results: Iterable[Result]) -> RateEstimate | None:
        """Of one configuration over its seeds and replicates; None where no rate was measured."""
        measured = [result for result in results if result.rate is not None]
        if len(measured) == 1:
            return self._rates[measured[0]]
        processes = [result.rate for result in measured if result.rate is not None]
        return estimate_rate(processes, self.between[measured[0].key]) if processes else None

    def baseline_twin(self, result: Result, baseline: Baseline) -> Result | None:
        """The trial with the baseline's knobs, all other knobs, the seed and the replicate the same.

        One that did not complete is found too, though it may not know what it ran on.
        """
        knobs = baseline.twin_of(result.knobs)
        twin = self._by_seed.get((result.key, knobs, result.seed_key))
        failed = (other for other in self._failed(result.key, knobs) if other.seed_key == result.seed_key)
        return twin or next(failed, None)

    def others(self, results: Sequence[Result]) -> list[Result]:
        """What else was run of the configuration of `results`: seeds and replicates that are not among them."""
        first = results[0]
        alike = dict.fromkeys([*self.configurations[first.key, first.knobs], *self._failed(first.key, first.knobs)])
        return [result for result in alike if result not in results]

    def _failed(self, key: ComparisonKey, knobs: tuple[object, ...]) -> list[Result]:
        """Unranked trials of the same task and knobs on the device, or on none."""
        return [other for other in self._unranked.get((key.task, knobs), ()) if other.key.device in (key.device, None)]

    def twin_with_lr(self, result: Result, lr: float) -> Result | None:
        """The comparable trial whose learning rate is nearest to `lr`, within `LR_TOLERANCE`; all else is the same."""
        group = self._by_lr.get(_but_lr(result, result.knobs), [])
        place = bisect_left(group, lr, key=_lr)
        near = [other for other in group[max(0, place - 1) : place + 1] if abs(_lr(other) - lr) <= LR_TOLERANCE * lr]
        return min(near, key=lambda other: abs(_lr(other) - lr), default=None)

    def _estimate_spreads(self) -> None:
        repeats: defaultdict[ComparisonKey, list[list[Result]]] = defaultdict(list)
        for (key, _), group in self.configurations.items():
            repeats[key].append([result for result in group if result.unranked_reason is None])
        for key, groups in repeats.items():
            alike: defaultdict[object, list[ProcessRate]] = defaultdict(list)
            for run in itertools.chain.from_iterable(groups):
                if run.rate is not None:
                    alike[run.knobs[:LR] + run.knobs[LR + 1 :]].append(run.rate)  # an lr does not change the speed
            self.between[key] = between_processes(alike.values())
            living = [[run for run in group if not run.learned_nothing] for group in groups if len(group) > 1]
            accuracies = [[run.accuracy for run in group if run.accuracy is not None] for group in living]
            self.seed_sd[key] = pooled_seed_sd(accuracies)


def is_comparable(result: Result) -> bool:
    """Whether it completed as it was asked to, and its rate was measured."""
    return result.unranked_reason is None and result.rate is not None


def _but_lr(result: Result, knobs: tuple[object, ...]) -> object:
    return result.key, knobs[:LR] + knobs[LR + 1 :], result.seed_key


def _lr(result: Result) -> float:
    return result.outcome.spec.config.lr
