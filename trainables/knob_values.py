"""The values of each knob: what is allowed, and a person's value into the program's."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from trainables.faults import did_you_mean, given
from trainables.specs import CompileMode, Optimizer, Precision

LARGEST_WHOLE = 2**31 - 1

Parser = Callable[[object], Any]


class KnobKind(StrEnum):
    TEXT = "text"
    WHOLE = "whole number"
    NUMBER = "number"
    SWITCH = "true or false"


@dataclass(frozen=True, slots=True, kw_only=True)
class KnobRule:
    kind: KnobKind
    allowed: str
    """The allowed values in words, as messages and the documentation say them."""
    parse: Parser
    """A plain value into the knob's type; raises `ValueError` with what is wrong."""


def whole(value: object, *, lowest: int, highest: int = LARGEST_WHOLE) -> int:
    """A whole number of YAML; booleans, texts and `32.0` are none. Raises `ValueError`."""
    if isinstance(value, bool) or not isinstance(value, int):
        as_whole = f"; write {int(value)}" if isinstance(value, float) and value.is_integer() else ""
        raise ValueError(f"must be a whole number of at least {lowest}, got {given(value)}{as_whole}{_unquote(value)}")
    if value < lowest:
        raise ValueError(f"must be at least {lowest}, got {value}")
    if value > highest:
        raise ValueError(f"must be at most {highest}, got {given(value)}")
    return value


def number(value: object) -> float:
    """A finite number of YAML; booleans and texts are none. Raises `ValueError`."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(f"must be a number, got {given(value)}{_unquote(value)}")
    try:
        real = float(value)
    except OverflowError:
        real = math.inf
    if not math.isfinite(real):
        raise ValueError(f"must be a finite number, got {given(value)}")
    return real


def one_of(value: object, options: type[StrEnum]) -> StrEnum:
    """A member of `options` by its text. Raises `ValueError` with the nearest spelling."""
    names = [option.value for option in options]
    if isinstance(value, str) and value in names:
        return options(value)
    nearest = did_you_mean(value, names) if isinstance(value, str) else ""
    raise ValueError(f"must be one of {', '.join(names)}, got {given(value)}{nearest}")


def parse_knob(name: str, value: object) -> Any:
    """The knob's value in the type that `TrainingConfig` has for it.

    Raises `ValueError` with what is allowed, what was given, and the nearest right spelling.
    """
    if name not in KNOB_RULES:
        raise ValueError(
            f"there is no knob {name!r}; there are {', '.join(KNOB_RULES)}{did_you_mean(name, KNOB_RULES)}"
        )
    return KNOB_RULES[name].parse(value)


def _unquote(value: object) -> str:
    """What to do about a number that was written as text."""
    bare = value.replace("_", "").strip() if isinstance(value, str) else ""
    try:
        return f"; write {bare} without quotes" if math.isfinite(float(bare)) else ""
    except ValueError:
        return ""


def _above_zero(value: object) -> float:
    real = number(value)
    if real <= 0:
        raise ValueError(f"must be above 0, got {given(value)}")
    return real


def _from_zero(value: object) -> float:
    real = number(value)
    if real < 0:
        raise ValueError(f"must be at least 0, got {given(value)}")
    return real


def _norm_or_none(value: object) -> float | None:
    if value is None:
        return None
    if isinstance(value, str):
        raise ValueError(f"must be a number above 0, or null for no clipping, got {given(value)}{_unquote(value)}")
    return _above_zero(value)


# YAML 1.1 reads these words as booleans and YAML 1.2 as text; where a switch is asked for, both readings agree.
_WORDS = {"on": True, "yes": True, "off": False, "no": False}


def _switch(value: object) -> bool:
    meant = _WORDS.get(value.lower(), value) if isinstance(value, str) else value
    if not isinstance(meant, bool):
        raise ValueError(f"must be true or false, got {given(value)}")
    return meant


def _compile(value: object) -> CompileMode:
    meant = _WORDS.get(value.lower(), value) if isinstance(value, str) else value
    if isinstance(meant, bool):
        return CompileMode.DEFAULT if meant else CompileMode.OFF
    try:
        return CompileMode(one_of(value, CompileMode))
    except ValueError as error:
        raise ValueError(str(error).replace("must be one of", "must be true, false, or one of")) from None


KNOB_RULES: Mapping[str, KnobRule] = {
    "precision": KnobRule(
        kind=KnobKind.TEXT,
        allowed="fp32, tf32, fp16, bf16",
        parse=lambda value: one_of(value, Precision),
    ),
    "batch_size": KnobRule(
        kind=KnobKind.WHOLE,
        allowed="a whole number of at least 1",
        parse=lambda value: whole(value, lowest=1),
    ),
    "compile": KnobRule(
        kind=KnobKind.TEXT,
        allowed="off, default, reduce-overhead, max-autotune; true means default, false means off",
        parse=_compile,
    ),
    "lr": KnobRule(kind=KnobKind.NUMBER, allowed="a number above 0", parse=_above_zero),
    "num_workers": KnobRule(
        kind=KnobKind.WHOLE,
        allowed="a whole number of at least 0",
        parse=lambda value: whole(value, lowest=0),
    ),
    "weight_decay": KnobRule(kind=KnobKind.NUMBER, allowed="a number of at least 0", parse=_from_zero),
    "optimizer": KnobRule(kind=KnobKind.TEXT, allowed="adamw, sgd", parse=lambda value: one_of(value, Optimizer)),
    "gradient_clip_norm": KnobRule(
        kind=KnobKind.NUMBER,
        allowed="a number above 0, or null for no clipping",
        parse=_norm_or_none,
    ),
    "channels_last": KnobRule(kind=KnobKind.SWITCH, allowed="true, false", parse=_switch),
    "prefetch_factor": KnobRule(
        kind=KnobKind.WHOLE,
        allowed="a whole number of at least 1",
        parse=lambda value: whole(value, lowest=1),
    ),
    "persistent_workers": KnobRule(kind=KnobKind.SWITCH, allowed="true, false", parse=_switch),
}
