"""What a trial is asked to do: the frozen types of a trial's request, and its identity."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from typing import Any

MEASUREMENT_VERSION = 1
"""Raised when the meaning of a number changes; records of different versions are never ranked together."""

TRIAL_ID_LENGTH = 16


class Precision(StrEnum):
    """What the arithmetic of a training step runs in."""

    FP32 = "fp32"
    """True IEEE single precision: TF32 is off."""
    TF32 = "tf32"
    """float32 tensors, TF32 matrix products and convolutions."""
    FP16 = "fp16"
    """Autocast to float16, with a GradScaler."""
    BF16 = "bf16"
    """Autocast to bfloat16, never with a GradScaler."""


class CompileMode(StrEnum):
    """The mode given to `torch.compile`; YAML's `true` means `default` and `false` means `off`."""

    OFF = "off"
    DEFAULT = "default"
    REDUCE_OVERHEAD = "reduce-overhead"
    MAX_AUTOTUNE = "max-autotune"


class Optimizer(StrEnum):
    ADAMW = "adamw"
    SGD = "sgd"
    """With Nesterov momentum 0.9."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingConfig:
    """The knobs of one trial. The first five are always asked for; each of the rest has a default."""

    precision: Precision
    batch_size: int
    compile: CompileMode
    lr: float
    num_workers: int
    """Loader worker processes; 0 loads in the training process."""
    weight_decay: float = 1e-2
    optimizer: Optimizer = Optimizer.ADAMW
    gradient_clip_norm: float | None = None
    """Largest 2-norm of the unscaled gradient; none: no clipping."""
    channels_last: bool = False
    prefetch_factor: int = 2
    """Batches that each loader worker prepares ahead; without workers it has no meaning and is left out."""
    persistent_workers: bool = True
    """Loader workers live on between epochs; without workers it has no meaning and is left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasurementProtocol:
    """How long a trial trains and how its throughput is measured. Exactly one of `epochs` and `max_steps` is given."""

    epochs: int | None = None
    max_steps: int | None = None
    """Optimizer steps in all, where an epoch is long."""
    schedule_epochs: int | None = None
    """Length of the cosine schedule, where a training of `epochs` is to stop before its end; none: `epochs`."""
    report_every_steps: int | None = None
    """Reports and checkpoints within an epoch; none: once an epoch (with `max_steps`: twenty times in all)."""
    warmup_steps: int = 5
    """Optimizer steps at the start, and after each resumption, that no window counts."""
    window_steps: int = 2
    """Fewest optimizer steps in a window."""
    window_seconds: float = 0.05
    """Shortest duration of a window."""
    windows: int = 30
    """A training that gave fewer windows is followed by measuring on a copy."""
    copy_seconds: float = 5.0
    """Longest time spent measuring on a copy."""
    version: int = MEASUREMENT_VERSION


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialSpec:
    """One trial: what to train, on what, how long, from which seed."""

    config: TrainingConfig
    model: str
    model_args: Mapping[str, Any] = field(default_factory=dict)
    dataset: str
    dataset_args: Mapping[str, Any] = field(default_factory=dict)
    num_classes: int | None = None
    """None: the data set's own."""
    protocol: MeasurementProtocol
    seed: int = 0
    replicate: int = 0
    """Replicate r of a trial trains from seed + r; it is not part of the identity."""
    code_fingerprint: str | None = None
    """Content hash of the user's model and data set code; none where there is none."""
    data_fingerprint: str | None = None
    """Hash of the names and sizes of the data set's files; none where there are none."""

    @property
    def training_seed(self) -> int:
        return self.seed + self.replicate

    @property
    def trial_id(self) -> str:
        """Content hash of all that was asked, but for the replicate: 16 hexadecimal digits.

        A value at its default is left out, so that a release that adds a knob finds the records of the one before.
        """
        asked = _but_defaults(self, spec_to_mapping(self)) | {
            "config": _but_defaults(self.config, config_to_mapping(self.config)),
            "protocol": _but_defaults(self.protocol, asdict(self.protocol)) | {"version": self.protocol.version},
        }
        asked.pop("replicate", None)
        canonical = json.dumps(asked, sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(canonical.encode()).hexdigest()[:TRIAL_ID_LENGTH]

    @property
    def label(self) -> str:
        """A readable name: `bf16-b256-compiled-lr0.001-w2`, with the further knobs that are not at their default."""
        config = self.config
        compiled = {CompileMode.OFF: "eager", CompileMode.DEFAULT: "compiled"}.get(config.compile, config.compile.value)
        parts = [
            config.precision.value,
            f"b{config.batch_size}",
            compiled,
            f"lr{config.lr:g}",
            f"w{config.num_workers}",
        ]
        parts += [f"{name}={value}" for name, value in further_knobs(config).items()]
        if self.replicate:
            parts.append(f"r{self.replicate}")
        return "-".join(parts)


MAIN_KNOBS = ("precision", "batch_size", "compile", "lr", "num_workers")
KNOBS = tuple(entry.name for entry in fields(TrainingConfig))


def further_knobs(config: TrainingConfig) -> dict[str, Any]:
    """The knobs beyond the main five that are not at their default."""
    return {
        entry.name: getattr(config, entry.name)
        for entry in fields(config)
        if entry.name not in MAIN_KNOBS and getattr(config, entry.name) != entry.default
    }


def config_to_mapping(config: TrainingConfig) -> dict[str, Any]:
    """Plain Python values by knob name."""
    return {name: _plain(getattr(config, name)) for name in KNOBS}


def spec_to_mapping(spec: TrialSpec) -> dict[str, Any]:
    """Plain Python values, as JSON and Ray carry them; `spec_from_mapping` reads them back."""
    mapping = {entry.name: _plain(getattr(spec, entry.name)) for entry in fields(spec)}
    mapping["config"] = config_to_mapping(spec.config)
    mapping["protocol"] = asdict(spec.protocol)
    return mapping


def spec_from_mapping(mapping: Mapping[str, Any]) -> TrialSpec:
    """The inverse of `spec_to_mapping`, for mappings that this program wrote (people write YAML: `spec_door`)."""
    config = dict(mapping["config"])
    config |= {
        "precision": Precision(config["precision"]),
        "compile": CompileMode(config["compile"]),
        "optimizer": Optimizer(config["optimizer"]),
    }
    rest = {name: value for name, value in mapping.items() if name not in ("config", "protocol")}
    return TrialSpec(config=TrainingConfig(**config), protocol=MeasurementProtocol(**mapping["protocol"]), **rest)


def _but_defaults(given: "TrialSpec | TrainingConfig | MeasurementProtocol", mapping: dict[str, Any]) -> dict[str, Any]:
    defaults = {entry.name: entry.default for entry in fields(given)}
    return {name: value for name, value in mapping.items() if value != defaults[name]}


def _plain(value: Any) -> Any:
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value
