"""`--baseline`: what every configuration is compared with, and whether the trials that this needs are added."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from trainables.faults import Faults, Place, did_you_mean, given
from trainables.knob_values import parse_knob
from trainables.specs import KNOBS, CompileMode, Precision, TrainingConfig
from trainables.yaml_fields import read_value
from trainables.yaml_reader import parse_yaml

AUTO, NONE = "auto", "none"
EXAMPLE = "precision=fp32,compile=off"


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """Of each configuration, the same one with these knobs replaced."""

    values: tuple[tuple[str, Any], ...]
    """Knobs and their values, in the order of `specs.KNOBS`."""

    def of(self, config: TrainingConfig) -> TrainingConfig:
        return replace(config, **dict(self.values))

    def is_met_by(self, knobs: tuple[object, ...]) -> bool:
        return self.twin_of(knobs) == knobs

    def twin_of(self, knobs: tuple[object, ...]) -> tuple[object, ...]:
        """As `of`, for the values of all knobs in the order of `specs.KNOBS`."""
        replaced = dict(zip(KNOBS, knobs, strict=True)) | dict(self.values)
        return tuple(replaced.values())

    @property
    def text(self) -> str:
        """As `--baseline` takes it."""
        return ",".join(f"{name}={_word(value)}" for name, value in self.values)


EAGER_FP32 = Baseline(values=(("precision", Precision.FP32), ("compile", CompileMode.OFF)))


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineChoice:
    baseline: Baseline | None
    """None: nothing is compared with a baseline."""
    adds_trials: bool
    """Whether a plan is given the baselines and twins that it lacks."""
    text: str | None
    """As it was asked for, in one spelling; None where nothing was asked for."""


def read_baseline(text: str | None) -> BaselineChoice:
    """`auto` (fp32 without compile), `none`, or knobs such as `precision=fp32,compile=off`.

    None asks for nothing: what was run in fp32 without compile is compared with, and nothing is added. Raises
    `InputError` with every fault.
    """
    if text is None:
        return BaselineChoice(baseline=EAGER_FP32, adds_trials=False, text=None)
    if text == AUTO:
        return BaselineChoice(baseline=EAGER_FP32, adds_trials=True, text=AUTO)
    if text == NONE:
        return BaselineChoice(baseline=None, adds_trials=False, text=NONE)
    baseline = _read_knobs(text)
    return BaselineChoice(baseline=baseline, adds_trials=True, text=baseline.text)


def shared_choice(texts: Iterable[str | None]) -> BaselineChoice:
    """What several runs asked for where that is the same; else what stands for nothing asked for."""
    asked = set(texts)
    return read_baseline(asked.pop() if len(asked) == 1 else None)


def _read_knobs(text: str) -> Baseline:
    faults = Faults()
    place = Place(source=f"--baseline {text}")
    if "=" not in text:
        what = f"must be {AUTO}, {NONE}, or knobs such as {EXAMPLE}, got {given(text)}"
        faults.add(place, "", f"{what}{did_you_mean(text, (AUTO, NONE))}")
        faults.raise_all()
    pairs = [part.partition("=") for part in text.split(",")]
    values: dict[str, Any] = {}
    for name, equals, written in ((name.strip(), equals, written) for name, equals, written in pairs):
        if name not in KNOBS:
            what = f"there is no knob {name!r}; there are {', '.join(KNOBS)}{did_you_mean(name, KNOBS)}"
            faults.add(place, "", what)
        elif not equals:
            faults.add(place, "", f"{name} has no value; write {name}=VALUE")
        elif name in values:
            faults.add(place, "", f"{name} is given twice; leave one out")
        else:
            node = parse_yaml(written, f"--baseline {name}", faults, numbered=False)
            values[name] = None if node is None else read_value(node, "", partial(parse_knob, name), None, faults)
    faults.raise_all()
    return Baseline(values=tuple((name, values[name]) for name in KNOBS if name in values))


def _word(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "null" if value is None else str(value)
