"""The trials that a plan lacks for its comparisons: baselines, and twins that differ in one knob."""

import heapq
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from orchestrator.baseline_choice import Baseline
from orchestrator.knob_order import knobs_order
from trainables.specs import KNOBS, CompileMode, MeasurementProtocol, TrainingConfig, config_to_mapping

WITHOUT_MEANING = ("prefetch_factor", "persistent_workers")
"""Knobs that say nothing without loader workers: changing them alone makes no twin that is worth a trial."""

Allows = Callable[[TrainingConfig], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedTrials:
    baselines: tuple[TrainingConfig, ...] = ()
    twins: tuple[TrainingConfig, ...] = ()
    """Others, for configurations that still had no twin that differs in one knob."""
    excluded_baselines: int = 0
    """Baselines that were missing and that the constraints leave out."""

    @property
    def configs(self) -> tuple[TrainingConfig, ...]:
        return self.baselines + self.twins


def added_trials(
    configs: Sequence[TrainingConfig],
    baseline: Baseline,
    *,
    allows: Allows,
    protocol: MeasurementProtocol,
    held: Collection[str] = (),
) -> AddedTrials:
    """What gives each of `configs` its baseline and a twin that differs in exactly one knob, as far as `allows` lets.

    The baselines follow from the configurations, and one serves all that differ from it in its knobs alone. Of the
    twins that are then still missing, those that serve the most are taken first, and of equals the cheapest: never
    more than 1 + ln(n) times the fewest there could be, for n configurations without one (Chvátal 1979). A twin takes
    its values from the other configurations and the baseline; knobs that are `held` it does not change.
    """
    present = set(configs)
    missing = [twin for twin in dict.fromkeys(map(baseline.of, configs)) if twin not in present]
    baselines = tuple(twin for twin in missing if allows(twin))
    return AddedTrials(
        baselines=baselines,
        twins=_missing_twins(configs, baselines, baseline, allows, protocol, held),
        excluded_baselines=len(missing) - len(baselines),
    )


def _missing_twins(
    configs: Sequence[TrainingConfig],
    baselines: Sequence[TrainingConfig],
    baseline: Baseline,
    allows: Allows,
    protocol: MeasurementProtocol,
    held: Collection[str],
) -> tuple[TrainingConfig, ...]:
    planned = [*configs, *baselines]
    lonely = _without_twin(configs, planned)
    if not lonely:
        return ()
    choices = _values(planned, baseline, held)
    serves: defaultdict[TrainingConfig, set[TrainingConfig]] = defaultdict(set)
    for config in lonely:
        for twin in _one_knob_away(config, choices):
            serves[twin].add(config)
    allowed = {twin: served for twin, served in serves.items() if allows(twin)}
    return tuple(_greedy_cover(allowed, set(lonely), lambda twin: _cost(twin, protocol)))


def _without_twin(configs: Iterable[TrainingConfig], planned: Iterable[TrainingConfig]) -> list[TrainingConfig]:
    alike = Counter(group for config in planned for group in _groups(config))
    return [config for config in configs if all(alike[group] == 1 for group in _groups(config))]


def _groups(config: TrainingConfig) -> Iterator[tuple[int, tuple[Any, ...]]]:
    """What all configurations share that differ from this one in one knob: the others, for each knob."""
    values = tuple(config_to_mapping(config).values())
    yield from ((place, values[:place] + values[place + 1 :]) for place in range(len(values)))


def _values(planned: Sequence[TrainingConfig], baseline: Baseline, held: Collection[str]) -> dict[str, list[Any]]:
    names = [name for name in KNOBS if name not in held and name not in WITHOUT_MEANING]
    rows = [asdict(config) for config in [*planned, *map(baseline.of, planned[:1])]]
    return {name: list(dict.fromkeys(row[name] for row in rows)) for name in names}


def _one_knob_away(config: TrainingConfig, choices: Mapping[str, Sequence[Any]]) -> Iterator[TrainingConfig]:
    for name, values in choices.items():
        others = (replace(config, **{name: value}) for value in values)
        yield from (twin for twin in others if twin != config)


def _greedy_cover(
    serves: Mapping[TrainingConfig, set[TrainingConfig]],
    unmet: set[TrainingConfig],
    cost: Callable[[TrainingConfig], tuple[Any, ...]],
) -> Iterator[TrainingConfig]:
    waiting = [(-len(served), cost(twin), twin) for twin, served in serves.items()]
    heapq.heapify(waiting)
    while waiting and unmet:
        promised, price, twin = heapq.heappop(waiting)
        left = serves[twin] & unmet
        if left and len(left) < -promised:
            heapq.heappush(waiting, (-len(left), price, twin))
        elif left:
            unmet -= left
            yield twin


def _cost(config: TrainingConfig, protocol: MeasurementProtocol) -> tuple[Any, ...]:
    """Uncompiled first, then the fewest steps (where their number is fixed, the smallest ones), then the plainest."""
    steps = -config.batch_size if protocol.epochs is not None else config.batch_size
    return config.compile is not CompileMode.OFF, steps, knobs_order(config_to_mapping(config).values())
