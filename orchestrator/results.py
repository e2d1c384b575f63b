"""The outcomes that count, one per trial, each with what is derived from it once: identity, rate, comparison key."""

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.accuracy_statistics import sampling_error
from orchestrator.bottleneck import LoopRates, loop_rates
from orchestrator.statistics import INTERVAL_Z, ProcessRate, process_rate
from trainables.measurements import LearningCurve
from trainables.outcomes import TrialOutcome, TrialStatus
from trainables.specs import MeasurementProtocol, config_to_mapping

LEARNED_LOSS_FRACTION = 0.98
"""A loss above this share of ln(classes) is still that of guessing."""

CHANCE_MARGIN = 0.01
"""How far above chance guessing may score, where the number of validation images is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskKey:
    """What was asked of a trial beside its knobs, seed and replicate; arguments are canonical JSON."""

    model: str
    model_args: str
    dataset: str
    dataset_args: str
    num_classes: int | None
    protocol: MeasurementProtocol
    code_fingerprint: str | None
    data_fingerprint: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonKey:
    """What two trials must share to be compared at all. A trial that never ran knows only some of it."""

    task: TaskKey
    device: str | None
    torch_version: str | None
    cuda_version: str | None
    cpu_threads: int | None
    measurement_version: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Result:
    """The outcome that counts for one trial and replicate on one kind of device."""

    outcome: TrialOutcome
    trial_id: str
    key: ComparisonKey
    knobs: tuple[object, ...]
    """Values of all knobs, in the order of `specs.KNOBS`."""
    accuracy: float | None
    rate: ProcessRate | None
    loop: LoopRates
    unranked_reason: str | None
    """Why it may never be ranked; None where it may."""

    @property
    def seed_key(self) -> tuple[int, int]:
        """What paired trials share: the same weights to start from, the same batches."""
        return self.outcome.spec.seed, self.outcome.spec.replicate

    @property
    def independent_images(self) -> int | None:
        """Validation images, or the source images that they were grown from."""
        if self.outcome.independent_validation_images is not None:
            return self.outcome.independent_validation_images
        return self.outcome.validation_images

    @property
    def num_classes(self) -> int | None:
        return self.outcome.num_classes or self.outcome.spec.num_classes

    @property
    def final_loss(self) -> float | None:
        """Training loss of the last epoch, or the validation loss where there is none."""
        curve = self.outcome.curve or LearningCurve()
        return last_finite(curve.train_loss) if curve.train_loss else last_finite(curve.validation_loss)

    @property
    def learned_nothing(self) -> bool:
        """The accuracy is still chance, and the loss still ln(classes), at the end: no NaN gives it away."""
        classes, loss = self.num_classes, self.final_loss
        if self.accuracy is None or loss is None or classes is None or classes < 2:
            return False
        chance, images = 1 / classes, self.independent_images
        margin = INTERVAL_Z * sampling_error(chance, images) if images else CHANCE_MARGIN
        return self.accuracy <= chance + margin and loss >= LEARNED_LOSS_FRACTION * math.log(classes)


def results_of(outcomes: Iterable[TrialOutcome]) -> list[Result]:
    """One result per (trial, replicate, device), in an order that does not depend on that of `outcomes`.

    Of several records of one key the latest attempt counts, and of one attempt the furthest segment. A record that
    names no device (the trial never came to run) is one more attempt on the device that the others name, if it is one.
    """
    trials: defaultdict[tuple[str, int], defaultdict[str | None, list[TrialOutcome]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for outcome in outcomes:
        trials[outcome.spec.trial_id, outcome.spec.replicate][outcome.device.device].append(outcome)
    found = []
    for (trial_id, _), by_device in sorted(trials.items()):
        if len(by_device) == 2 and None in by_device:
            nowhere = by_device.pop(None)
            by_device[next(iter(by_device))] += nowhere
        found += [_result(trial_id, _newest(by_device[device])) for device in sorted(by_device, key=str)]
    return found


def last_finite(values: tuple[float | None, ...]) -> float | None:
    """The last entry of a curve; None where it is missing or no number."""
    last = values[-1] if values else None
    return last if last is not None and math.isfinite(last) else None


def canonical(arguments: Mapping[str, Any]) -> str:
    return json.dumps(arguments, sort_keys=True, default=str)


def _newest(records: list[TrialOutcome]) -> TrialOutcome:
    if len(records) == 1:
        return records[0]
    return max(records, key=_newness)


def _newness(record: TrialOutcome) -> tuple[int, int, int, str, str]:
    """Its text comes last, so that not even two records of one moment depend on the order they were read in."""
    finished_at = record.finished_at or ""
    return record.attempts, record.segment_end, record.epochs_completed, finished_at, repr(record)


def _result(trial_id: str, outcome: TrialOutcome) -> Result:
    accuracy = last_finite(outcome.curve.accuracy) if outcome.curve else None
    rate, wrong_rate = None, None
    if outcome.throughput is not None:
        try:
            rate = process_rate(outcome.throughput)
        except ValueError as error:
            wrong_rate = str(error)
    return Result(
        outcome=outcome,
        trial_id=trial_id,
        key=_comparison_key(outcome),
        knobs=tuple(config_to_mapping(outcome.spec.config).values()),
        accuracy=accuracy,
        rate=rate,
        loop=loop_rates(outcome, rate),
        unranked_reason=_unranked_reason(outcome, wrong_rate),
    )


def _comparison_key(outcome: TrialOutcome) -> ComparisonKey:
    spec, device = outcome.spec, outcome.device
    task = TaskKey(
        model=spec.model,
        model_args=canonical(spec.model_args),
        dataset=spec.dataset,
        dataset_args=canonical(spec.dataset_args),
        num_classes=spec.num_classes,
        protocol=spec.protocol,
        code_fingerprint=spec.code_fingerprint,
        data_fingerprint=spec.data_fingerprint,
    )
    return ComparisonKey(
        task=task,
        device=device.device,
        torch_version=device.torch_version,
        cuda_version=device.cuda_version,
        cpu_threads=outcome.placement.cpu_threads,
        measurement_version=outcome.measurement_version,
    )


def _unranked_reason(outcome: TrialOutcome, wrong_rate: str | None) -> str | None:
    asked = outcome.spec.config.precision
    executed = outcome.precision.executed_precision if outcome.precision else asked
    if outcome.status is not TrialStatus.COMPLETED:
        return outcome.status_reason or _WITHOUT_REASON[outcome.status]
    if executed != asked:
        return f"asked for {asked}, but what ran was {executed}"
    if outcome.compilation is not None and outcome.compilation.graphs == 0:
        return f"asked for compile {outcome.spec.config.compile}, but the compiler took nothing of it: it ran eagerly"
    return _not_finite(outcome.curve or LearningCurve()) or wrong_rate


def _not_finite(curve: LearningCurve) -> str | None:
    """Records hold no NaN; an outcome that was never stored may, and must not win."""
    last = {
        "accuracy": curve.accuracy[-1:],
        "training loss": curve.train_loss[-1:],
        "validation loss": curve.validation_loss[-1:],
    }
    for name, values in last.items():
        if any(value is not None and not math.isfinite(value) for value in values):
            return f"its {name} is not a finite number"
    return None


_WITHOUT_REASON = {
    TrialStatus.STOPPED_EARLY: "it was stopped before its last epoch",
    TrialStatus.UNSUPPORTED: "it cannot run here, and the record does not say why",
    TrialStatus.OUT_OF_MEMORY: "it ran out of memory",
    TrialStatus.DIVERGED: "its loss became NaN or infinite",
    TrialStatus.TIMED_OUT: "it took longer than it was allowed to",
    TrialStatus.FAILED: "it raised an exception that the record does not name",
    TrialStatus.LOST: "its worker process or node died",
}
