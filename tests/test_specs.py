"""A trial's request: its identity, its readable name, and its one way to plain values and back."""

import json
import math
from dataclasses import FrozenInstanceError, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainables.specs import (
    KNOBS,
    MAIN_KNOBS,
    CompileMode,
    MeasurementProtocol,
    Optimizer,
    Precision,
    TrainingConfig,
    TrialSpec,
    config_to_mapping,
    further_knobs,
    spec_from_mapping,
    spec_to_mapping,
)

CONFIG = TrainingConfig(precision=Precision.BF16, batch_size=256, compile=CompileMode.DEFAULT, lr=1e-3, num_workers=2)
SPEC = TrialSpec(
    config=CONFIG,
    model="fashion_cnn",
    model_args={"width": 8},
    dataset="digits",
    protocol=MeasurementProtocol(epochs=2),
)

numbers = st.floats(allow_nan=False, allow_infinity=False)
plain = st.recursive(
    st.none() | st.booleans() | st.integers() | numbers | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
arguments = st.dictionaries(st.text(max_size=5), plain, max_size=3)
configs = st.builds(
    TrainingConfig,
    precision=st.sampled_from(Precision),
    batch_size=st.integers(1, 4096),
    compile=st.sampled_from(CompileMode),
    lr=numbers,
    num_workers=st.integers(0, 16),
    weight_decay=numbers,
    optimizer=st.sampled_from(Optimizer),
    gradient_clip_norm=st.none() | numbers,
    channels_last=st.booleans(),
    prefetch_factor=st.integers(1, 8),
    persistent_workers=st.booleans(),
)
specs = st.builds(
    TrialSpec,
    config=configs,
    model=st.text(max_size=8),
    model_args=arguments,
    dataset=st.text(max_size=8),
    dataset_args=arguments,
    num_classes=st.none() | st.integers(2, 1000),
    protocol=st.builds(MeasurementProtocol, epochs=st.integers(1, 90), warmup_steps=st.integers(0, 9)),
    seed=st.integers(0, 2**31),
    replicate=st.integers(0, 9),
    code_fingerprint=st.none() | st.text(max_size=8),
    data_fingerprint=st.none() | st.text(max_size=8),
)


@given(spec=specs)
def test_a_spec_survives_json(spec: TrialSpec) -> None:
    back = spec_from_mapping(json.loads(json.dumps(spec_to_mapping(spec), allow_nan=False)))
    assert back == spec
    assert back.trial_id == spec.trial_id


def test_plain_values_are_of_plain_types() -> None:
    """Ray and JSON carry them: no enum, no tuple."""
    mapping = spec_to_mapping(replace(SPEC, model_args={"sizes": (1, 2), "mode": Precision.FP16}))
    assert type(mapping["config"]["precision"]) is str
    assert mapping["model_args"] == {"sizes": [1, 2], "mode": "fp16"}
    assert type(mapping["model_args"]["mode"]) is str


def test_the_identity_is_the_same_in_every_process_and_release() -> None:
    """A run resumed after an upgrade finds its records under this; it changes only when a trial's meaning does."""
    assert SPEC.trial_id == "b55aafcba7379aeb"


def test_a_value_at_its_default_is_no_part_of_the_identity() -> None:
    """A release that adds a knob, whose default means what was done before, finds the earlier records."""
    written_out = replace(SPEC, config=replace(SPEC.config, weight_decay=1e-2), num_classes=None)
    assert written_out.trial_id == SPEC.trial_id
    assert replace(SPEC, config=replace(SPEC.config, weight_decay=2e-2)).trial_id != SPEC.trial_id


DIFFERENT: dict[str, Any] = {
    "model": "resnet18",
    "model_args": {"width": 9},
    "dataset": "digits28",
    "dataset_args": {"train_limit": 100},
    "num_classes": 10,
    "seed": 1,
    "code_fingerprint": "abc",
    "data_fingerprint": "abc",
    "protocol": MeasurementProtocol(epochs=3),
}
DIFFERENT_KNOBS: dict[str, Any] = {
    "precision": Precision.FP16,
    "batch_size": 128,
    "compile": CompileMode.OFF,
    "lr": 3e-4,
    "num_workers": 0,
    "weight_decay": 0.0,
    "optimizer": Optimizer.SGD,
    "gradient_clip_norm": 1.0,
    "channels_last": True,
    "prefetch_factor": 4,
    "persistent_workers": False,
}


def test_whatever_is_asked_is_part_of_the_identity() -> None:
    assert set(DIFFERENT) == {name for name in spec_to_mapping(SPEC) if name not in ("config", "replicate")}
    assert set(DIFFERENT_KNOBS) == set(KNOBS)
    others = [replace(SPEC, **{name: value}) for name, value in DIFFERENT.items()]
    others += [replace(SPEC, config=replace(CONFIG, **{name: value})) for name, value in DIFFERENT_KNOBS.items()]
    assert len({SPEC.trial_id, *(other.trial_id for other in others)}) == 1 + len(others)


@pytest.mark.parametrize("field", [entry for entry in spec_to_mapping(SPEC)["protocol"] if entry != "epochs"])
def test_the_whole_protocol_is_part_of_the_identity(field: str) -> None:
    changed = replace(SPEC.protocol, **{field: 7})
    assert replace(SPEC, protocol=changed).trial_id != SPEC.trial_id


@given(spec=specs, replicate=st.integers(0, 99))
def test_a_replicate_is_the_same_trial_from_another_seed(spec: TrialSpec, replicate: int) -> None:
    other = replace(spec, replicate=replicate)
    assert other.trial_id == spec.trial_id
    assert other.training_seed == spec.seed + replicate


def test_the_order_of_arguments_is_not_part_of_the_identity() -> None:
    one, other = (replace(SPEC, model_args=dict(pairs)) for pairs in ([("a", 1), ("b", 2)], [("b", 2), ("a", 1)]))
    assert one.trial_id == other.trial_id


def test_a_spec_with_nan_has_no_identity() -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        _ = replace(SPEC, config=replace(CONFIG, lr=math.nan)).trial_id


def test_a_spec_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        SPEC.seed = 1  # type: ignore[misc]


@pytest.mark.parametrize(
    ("changes", "label"),
    [
        ({}, "bf16-b256-compiled-lr0.001-w2"),
        ({"compile": CompileMode.OFF, "lr": 3e-4, "num_workers": 0}, "bf16-b256-eager-lr0.0003-w0"),
        ({"compile": CompileMode.MAX_AUTOTUNE, "lr": 1e-5}, "bf16-b256-max-autotune-lr1e-05-w2"),
        (
            {"channels_last": True, "weight_decay": 0.0},
            "bf16-b256-compiled-lr0.001-w2-weight_decay=0.0-channels_last=True",
        ),
    ],
)
def test_a_label_reads_as_the_configuration(changes: dict[str, Any], label: str) -> None:
    assert replace(SPEC, config=replace(CONFIG, **changes)).label == label


def test_a_label_names_the_replicate() -> None:
    assert replace(SPEC, replicate=2).label == "bf16-b256-compiled-lr0.001-w2-r2"


def test_further_knobs_are_those_away_from_their_default() -> None:
    assert further_knobs(CONFIG) == {}
    assert further_knobs(replace(CONFIG, optimizer=Optimizer.SGD)) == {"optimizer": Optimizer.SGD}


def test_every_knob_is_in_the_mapping_in_the_order_of_the_fields() -> None:
    assert tuple(config_to_mapping(CONFIG)) == KNOBS
    assert KNOBS[: len(MAIN_KNOBS)] == MAIN_KNOBS
