"""People's values into configurations and specs, every fault at once: the door of `python -m trainables.trial`."""

from collections.abc import Collection, Mapping
from functools import partial
from typing import Any

from trainables.entries import code_fingerprint, data_fingerprint
from trainables.faults import Faults
from trainables.knob_values import parse_knob
from trainables.lr_rule import read_lr_rule, with_scaled_lr
from trainables.specs import KNOBS, MAIN_KNOBS, TrainingConfig, TrialSpec, config_to_mapping
from trainables.task import TASK_KEYS, Task, read_task, task_mapping
from trainables.yaml_fields import Fields, read_mapping, read_value
from trainables.yaml_reader import Node, format_yaml, read_text

__all__ = [
    "SPACE_KEYS",
    "config_as_knobs",
    "missing_knobs",
    "parse_knob",
    "read_config",
    "read_spec",
    "spec_from_text",
    "spec_to_yaml",
]

SPACE_KEYS = (*TASK_KEYS, "knobs", "configs", "constraints", "lr_rule", "lr_reference_batch_size")
"""Every key of a space file, in the order in which they are written."""


_SWEEP = "leave one, or run all with python -m orchestrator.sweep"


def read_spec(path: str) -> TrialSpec:
    """The one trial of a file whose knobs are single values, such as best.yaml; fingerprints are taken now.

    Raises `InputError` with every fault of the file.
    """
    return spec_from_text(read_text(path), source=path)


def spec_from_text(text: str, *, source: str) -> TrialSpec:
    """As `read_spec`; `source` names the text in messages."""
    faults = Faults()
    root = read_mapping(text, source, allowed=SPACE_KEYS, faults=faults)
    fields = Fields(root, allowed=SPACE_KEYS, faults=faults)
    task = read_task(fields)
    rule, reference = read_lr_rule(fields)
    config = _read_only_config(fields)
    if any(fields.items("constraints")):
        fields.fault("constraints", "choose among configurations, and one is run here; leave them out")
    if config is not None and not faults:
        try:
            config = with_scaled_lr(config, rule, reference)
        except ValueError as error:
            fields.fault("lr_rule", str(error))
    faults.raise_all()
    if config is None:
        raise ValueError(f"{source}: a file without a configuration has a fault")
    return task.spec(
        config,
        code_fingerprint=code_fingerprint([task.model, task.dataset]),
        data_fingerprint=data_fingerprint(task.dataset, task.dataset_args),
    )


def spec_to_yaml(spec: TrialSpec) -> str:
    """The file that `read_spec` reads back as this trial: its seed is that of the training, its replicate 0."""
    task = Task(
        model=spec.model,
        model_args=spec.model_args,
        dataset=spec.dataset,
        dataset_args=spec.dataset_args,
        num_classes=spec.num_classes,
        protocol=spec.protocol,
        seed=spec.training_seed,
    )
    return format_yaml({**task_mapping(task), "knobs": config_as_knobs(spec.config)})


def config_as_knobs(config: TrainingConfig, inherited: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Plain values of the main knobs, and of the further ones that are not what leaving them out would make them."""
    values = config_to_mapping(config)
    usual = config_to_mapping(TrainingConfig(**{name: values[name] for name in MAIN_KNOBS})) | dict(inherited or {})
    return {name: value for name, value in values.items() if name in MAIN_KNOBS or value != usual[name]}


def read_config(node: Node, path: str, *, inherited: Mapping[str, Any], faults: Faults) -> TrainingConfig | None:
    """One configuration: its own knobs over the inherited ones. None where that leaves out a main knob, which is then
    a fault; a refused value is a fault too, and something stands in its place.
    """
    fields = Fields(node, path=path, allowed=KNOBS, faults=faults)
    own = {name: entry for name in KNOBS if (entry := fields.node(name)) is not None}
    parsed = {
        name: read_value(entry, fields.path_of(name), partial(parse_knob, name), None, faults)
        for name, entry in own.items()
    }
    values = {**inherited, **parsed}
    missing = missing_knobs(values)
    if not isinstance(node.value, Mapping):
        return None
    if missing:
        faults.add(node.place, path, f"{missing}; a configuration gives them itself, or knobs gives a single value")
        return None
    return TrainingConfig(**values)


def missing_knobs(present: Collection[str]) -> str:
    """`lr, num_workers missing` for the main knobs that are not among `present`; empty where all are."""
    missing = [name for name in MAIN_KNOBS if name not in present]
    return f"{', '.join(missing)} missing" if missing else ""


def _read_only_config(fields: Fields) -> TrainingConfig | None:
    faults = fields.faults
    fixed = _read_single_values(fields)
    configs = list(fields.items("configs"))
    found = [
        read_config(node, f"configs[{index}]", inherited=fixed, faults=faults) for index, node in enumerate(configs)
    ]
    missing = missing_knobs(fixed)
    if not missing:
        found.insert(0, TrainingConfig(**fixed))
    elif not configs:
        fields.fault("knobs", f"{missing}; every trial has {', '.join(MAIN_KNOBS)}")
    distinct = list(dict.fromkeys(found))
    if len(distinct) > 1 and not faults:
        fields.fault("configs", f"there are {len(distinct)} configurations, and one is run here; {_SWEEP}")
    return distinct[0] if distinct else None


def _read_single_values(fields: Fields) -> dict[str, Any]:
    node = fields.node("knobs")
    if node is None:
        return {}
    knobs = Fields(node, path="knobs", allowed=KNOBS, faults=fields.faults)
    values: dict[str, Any] = {}
    for name in KNOBS:
        entry = knobs.node(name)
        if entry is None:
            continue
        values[name] = None
        if isinstance(entry.value, tuple) and len(entry.value) == 1:
            entry = entry.value[0]
        if isinstance(entry.value, (tuple, Mapping)):
            kind = "a distribution" if isinstance(entry.value, Mapping) else f"a list of {len(entry.value)} values"
            knobs.fault(name, f"must be a single value, got {kind}; {_SWEEP}")
        else:
            parse = partial(parse_knob, name)
            values[name] = read_value(entry, knobs.path_of(name), parse, None, fields.faults)
    return values
