"""How the learning rate follows the batch size."""

import math
from dataclasses import replace
from enum import StrEnum

from trainables.knob_values import one_of, parse_knob, whole
from trainables.specs import TrainingConfig
from trainables.yaml_fields import Fields

SIGNIFICANT_DIGITS = 12
"""A scaled learning rate is rounded to these, so that a trial's identity does not hang on the last bit."""

WRITTEN_DIGITS = 10
"""Of a learning rate as people write it: found again from a scaled one, whose rounding they must hide."""


class LrRule(StrEnum):
    NONE = "none"
    LINEAR = "linear"
    """lr × batch_size ÷ reference (Goyal et al. 2017, arXiv:1706.02677)."""
    SQRT = "sqrt"
    """lr × √(batch_size ÷ reference) (Krizhevsky 2014, arXiv:1404.5997)."""


def read_lr_rule(fields: Fields) -> tuple[LrRule, int | None]:
    """The rule of a file and its reference batch size, which a rule other than `none` needs."""
    rule = fields.read("lr_rule", lambda value: LrRule(one_of(value, LrRule)), LrRule.NONE)
    reference = fields.read("lr_reference_batch_size", lambda value: whole(value, lowest=1), None)
    if rule is not LrRule.NONE and fields.node("lr_reference_batch_size") is None:
        fields.fault("lr_rule", f"{rule.value} needs lr_reference_batch_size, the batch size at which lr is right")
    return rule, reference


def with_written_lr(config: TrainingConfig, rule: LrRule, reference_batch_size: int | None) -> TrainingConfig:
    """The inverse of `with_scaled_lr`, for learning rates of up to `WRITTEN_DIGITS` digits."""
    if rule is LrRule.NONE or reference_batch_size is None:
        return config
    ratio = reference_batch_size / config.batch_size
    lr = config.lr * (math.sqrt(ratio) if rule is LrRule.SQRT else ratio)
    return replace(config, lr=float(f"{lr:.{WRITTEN_DIGITS}g}"))


def with_scaled_lr(config: TrainingConfig, rule: LrRule, reference_batch_size: int | None) -> TrainingConfig:
    """`config` with the learning rate that its `lr`, right at the reference, becomes at its batch size.

    Raises `ValueError` where that is no usable learning rate, or a rule is given without its reference.
    """
    if rule is LrRule.NONE:
        return config
    if reference_batch_size is None:
        raise ValueError(f"lr_rule {rule.value} needs a reference batch size")
    ratio = config.batch_size / reference_batch_size
    lr = config.lr * (math.sqrt(ratio) if rule is LrRule.SQRT else ratio)
    try:
        return replace(config, lr=parse_knob("lr", float(f"{lr:.{SIGNIFICANT_DIGITS}g}")))
    except ValueError as error:
        raise ValueError(f"lr {config.lr:g} scaled to batch_size {config.batch_size} {error}") from None
