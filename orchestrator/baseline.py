"""A configuration against its baseline: the same one with given knobs replaced, paired by seed."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from orchestrator.accuracy_statistics import difference_noise
from orchestrator.baseline_choice import Baseline
from orchestrator.comparison import is_loss
from orchestrator.matching import Matching, is_comparable
from orchestrator.results import Result
from orchestrator.statistics import Ratio, rate_ratio


class NoBaseline(StrEnum):
    """Why there is nothing to compare a configuration to."""

    NOT_ASKED = "not_asked"
    """`--baseline none`."""
    IS_BASELINE = "is_baseline"
    NOT_RUN = "not_run"
    NOT_COMPLETED = "not_completed"
    """It was run and cannot be compared: see `twins`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgainstBaseline:
    """Speed-up and accuracy change over the seeds that both have; unmatched trials are never compared."""

    missing: NoBaseline | None
    twins: tuple[Result, ...] = ()
    """The baseline's trials, one for each paired seed."""
    speedup: Ratio | None = None
    """None where a rate of the two was not measured."""
    accuracy_change: float | None = None
    accuracy_noise: float | None = None

    @property
    def loses_accuracy(self) -> bool:
        return is_loss(self.accuracy_change, self.accuracy_noise)


def against_baseline(matching: Matching, results: Sequence[Result], baseline: Baseline | None) -> AgainstBaseline:
    """`results`: the ranked trials of one configuration, one for each seed and replicate."""
    if baseline is None:
        return AgainstBaseline(missing=NoBaseline.NOT_ASKED)
    if baseline.is_met_by(results[0].knobs):
        return AgainstBaseline(missing=NoBaseline.IS_BASELINE)
    found = [(twin, result) for result in results if (twin := matching.baseline_twin(result, baseline)) is not None]
    pairs = [(twin, result) for twin, result in found if is_comparable(twin)]
    if not pairs:
        missing = NoBaseline.NOT_COMPLETED if found else NoBaseline.NOT_RUN
        return AgainstBaseline(missing=missing, twins=tuple(twin for twin, _ in found))
    after = matching.rate_of_all(result for _, result in pairs)
    before = matching.rate_of_all(twin for twin, _ in pairs)
    change, noise = _accuracy_change(matching, pairs)
    return AgainstBaseline(
        missing=None,
        twins=tuple(twin for twin, _ in pairs),
        speedup=rate_ratio(after, before) if after and before else None,
        accuracy_change=change,
        accuracy_noise=noise,
    )


def _accuracy_change(matching: Matching, pairs: Sequence[tuple[Result, Result]]) -> tuple[float | None, float | None]:
    accuracies = [
        (twin.accuracy, result.accuracy)
        for twin, result in pairs
        if twin.accuracy is not None and result.accuracy is not None
    ]
    if not accuracies:
        return None, None
    before = statistics.fmean(twin for twin, _ in accuracies)
    after = statistics.fmean(own for _, own in accuracies)
    differences = [own - twin for twin, own in accuracies]
    first = pairs[0][0]
    seed_sd = matching.seed_sd[first.key]
    images = first.independent_images
    return after - before, difference_noise(before, after, images, seed_sd=seed_sd, differences=differences)
