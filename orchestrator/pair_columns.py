"""The columns of pairs.parquet: names and types in their order, and one row for each matched pair."""

from typing import Any

import pyarrow as pa

from orchestrator.comparison import MatchedPair

PAIR_SCHEMA = pa.schema(
    {
        "knob": pa.string(),
        "before": pa.string(),
        "after": pa.string(),
        "before_trial_id": pa.string(),
        "after_trial_id": pa.string(),
        "replicate": pa.int64(),
        "seed": pa.int64(),
        "device": pa.string(),
        "speedup": pa.float64(),
        "speedup_low": pa.float64(),
        "speedup_high": pa.float64(),
        "accuracy_change": pa.float64(),
        "accuracy_noise": pa.float64(),
        "verdict": pa.string(),
        "scaled_lr_trial_id": pa.string(),
        "scaled_lr_rule": pa.string(),
        "scaled_lr_accuracy_change": pa.float64(),
    }
)


def pair_row(pair: MatchedPair) -> dict[str, Any]:
    """Values of knobs are text, since one column holds those of all knobs; a knob that is not set is None."""
    twin = pair.scaled_lr
    return {
        "knob": pair.knob,
        "before": knob_text(pair.before_value),
        "after": knob_text(pair.after_value),
        "before_trial_id": pair.before.trial_id,
        "after_trial_id": pair.after.trial_id,
        "replicate": pair.after.outcome.spec.replicate,
        "seed": pair.after.outcome.spec.seed,
        "device": pair.after.outcome.device.device,
        "speedup": pair.speedup.value,
        "speedup_low": pair.speedup.low,
        "speedup_high": pair.speedup.high,
        "accuracy_change": pair.accuracy_change,
        "accuracy_noise": pair.accuracy_noise,
        "verdict": pair.verdict.value,
        "scaled_lr_trial_id": twin.result.trial_id if twin else None,
        "scaled_lr_rule": twin.rule if twin else None,
        "scaled_lr_accuracy_change": twin.accuracy_change if twin else None,
    }


def knob_text(value: object) -> str | None:
    """As YAML has it."""
    if isinstance(value, bool):
        return str(value).lower()
    return None if value is None else str(value)
