"""What every configuration of a file trains: a model on a data set, how long, from which seed."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from trainables.entries import ENTRY, TIMM_PREFIX, is_entry
from trainables.faults import did_you_mean, given
from trainables.knob_values import LARGEST_WHOLE, whole
from trainables.model_names import BUILT_IN_DATASETS, BUILT_IN_MODELS, dataset_names, model_names
from trainables.specs import MeasurementProtocol, TrainingConfig, TrialSpec
from trainables.yaml_fields import Fields, read_value

TASK_KEYS = (
    "model",
    "model_args",
    "dataset",
    "dataset_args",
    "num_classes",
    "epochs",
    "max_steps",
    "schedule_epochs",
    "report_every_steps",
    "seed",
)
LIMITS = ("train_limit", "validation_limit")
"""Arguments that every data set has: the largest number of its images that are used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    model: str
    model_args: Mapping[str, Any] = field(default_factory=dict)
    dataset: str
    dataset_args: Mapping[str, Any] = field(default_factory=dict)
    num_classes: int | None = None
    """None: the data set's own."""
    protocol: MeasurementProtocol
    seed: int = 0

    def spec(
        self,
        config: TrainingConfig,
        *,
        replicate: int = 0,
        code_fingerprint: str | None = None,
        data_fingerprint: str | None = None,
    ) -> TrialSpec:
        return TrialSpec(
            config=config,
            model=self.model,
            model_args=self.model_args,
            dataset=self.dataset,
            dataset_args=self.dataset_args,
            num_classes=self.num_classes,
            protocol=self.protocol,
            seed=self.seed,
            replicate=replicate,
            code_fingerprint=code_fingerprint,
            data_fingerprint=data_fingerprint,
        )


def read_task(fields: Fields) -> Task:
    """The task of a file. Where a key was refused, which is then a fault, a stand-in is in its place."""
    for key in ("model", "dataset"):
        if fields.node(key) is None:
            fields.fault(key, "is missing; every file names a model and a dataset")
    return Task(
        model=fields.read("model", _model_name, ""),
        model_args=fields.read("model_args", _arguments, {}),
        dataset=fields.read("dataset", _dataset_name, ""),
        dataset_args=_read_dataset_args(fields),
        num_classes=fields.read("num_classes", _num_classes, None),
        protocol=_read_protocol(fields),
        seed=fields.read("seed", parse_seed, 0),
    )


def task_mapping(task: Task) -> dict[str, Any]:
    """The keys of the YAML that `read_task` reads back equal."""
    lasting = {
        "num_classes": task.num_classes,
        "epochs": task.protocol.epochs,
        "max_steps": task.protocol.max_steps,
        "schedule_epochs": task.protocol.schedule_epochs,
        "report_every_steps": task.protocol.report_every_steps,
    }
    return {
        "model": task.model,
        "model_args": dict(task.model_args),
        "dataset": task.dataset,
        "dataset_args": dict(task.dataset_args),
        **{key: value for key, value in lasting.items() if value is not None},
        "seed": task.seed,
    }


def parse_seed(value: object) -> int:
    """Raises `ValueError`."""
    return whole(value, lowest=0, highest=LARGEST_WHOLE)


def _read_protocol(fields: Fields) -> MeasurementProtocol:
    given_lengths = [key for key in ("epochs", "max_steps") if fields.node(key) is not None]
    if not given_lengths:
        fields.fault("epochs", "is missing; give epochs, or max_steps where an epoch is long")
    if len(given_lengths) == 2:
        fields.fault("max_steps", "is given beside epochs; leave one of them out")
    epochs = fields.read("epochs", _positive, None)
    schedule_epochs = fields.read("schedule_epochs", _positive, None)
    if schedule_epochs is not None and (epochs is None or schedule_epochs < epochs):
        than = "without epochs" if epochs is None else f"and epochs {epochs}"
        fields.fault("schedule_epochs", f"must be at least epochs, got {schedule_epochs} {than}")
    return MeasurementProtocol(
        epochs=epochs,
        max_steps=fields.read("max_steps", _positive, None),
        schedule_epochs=schedule_epochs,
        report_every_steps=fields.read("report_every_steps", _positive, None),
    )


def _positive(value: object) -> int:
    return whole(value, lowest=1)


def _num_classes(value: object) -> int | None:
    return None if value is None else whole(value, lowest=2)


def _model_name(value: object) -> str:
    name = _text(value)
    if name.startswith(TIMM_PREFIX) and name != TIMM_PREFIX:
        return name
    return _known_name(name, BUILT_IN_MODELS, model_names, f"torchvision's classification models, {TIMM_PREFIX}NAME")


def _dataset_name(value: object) -> str:
    return _known_name(_text(value), BUILT_IN_DATASETS, dataset_names, "torchvision's classification data sets")


def _text(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError(f"must be a name, got {given(value)}")
    return value


def _known_name(name: str, built_in: tuple[str, ...], names: Callable[[], tuple[str, ...]], others: str) -> str:
    """`name`, if it is an entry rightly written or one of `names`, which are slow to find."""
    if is_entry(name):
        if ENTRY.fullmatch(name) is None:
            raise ValueError(f"must be written package.module:callable, got {given(name)}")
        return name
    if name in built_in or name in names():
        return name
    known = f"{', '.join(built_in)}, {others}, or package.module:callable"
    raise ValueError(f"must be one of {known}, got {given(name)}{did_you_mean(name, names())}")


def _arguments(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"must be a mapping of arguments, got {given(value)}; write {{}} for none")
    return value


def _read_dataset_args(fields: Fields) -> dict[str, Any]:
    node = fields.node("dataset_args")
    if node is not None and isinstance(node.value, Mapping):
        for limit in LIMITS:
            entry = node.value.get(limit)
            if entry is not None:
                read_value(entry, f"dataset_args.{limit}", _limit, None, fields.faults)
    return fields.read("dataset_args", _arguments, {})


def _limit(value: object) -> int | None:
    return None if value is None else whole(value, lowest=1)
