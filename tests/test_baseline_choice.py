"""What `--baseline` takes, and what is refused with what is allowed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.baseline_choice import EAGER_FP32, Baseline, read_baseline, shared_choice
from tests.built_outcomes import config
from tests.space_building import VALUES
from trainables.errors import InputError
from trainables.knob_values import parse_knob
from trainables.specs import KNOBS, CompileMode, Precision, config_to_mapping


def test_auto_is_fp32_without_compile_and_adds_what_is_missing() -> None:
    choice = read_baseline("auto")
    assert (choice.baseline, choice.adds_trials) == (EAGER_FP32, True)


def test_none_compares_with_nothing_and_saying_nothing_adds_nothing() -> None:
    assert (read_baseline("none").baseline, read_baseline("none").adds_trials) == (None, False)
    assert (read_baseline(None).baseline, read_baseline(None).adds_trials) == (EAGER_FP32, False)


def test_knobs_are_read_in_yamls_words_and_kept_in_one_spelling() -> None:
    choice = read_baseline("compile=false, batch_size=64,lr=3e-4,precision=bf16")
    assert choice.text == "precision=bf16,batch_size=64,compile=off,lr=0.0003"
    assert choice.baseline is not None
    assert choice.baseline.of(config("fp16", 256, "default", num_workers=2)) == config(
        "bf16", 64, "off", 3e-4, num_workers=2
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("auot", "must be auto, none, or knobs such as precision=fp32,compile=off, got 'auot'; did you mean 'auto'?"),
        ("precison=fp32", "there is no knob 'precison'; there are precision, "),
        ("precison=fp32", "; did you mean 'precision'?"),
        ("precision=bf61", "must be one of fp32, tf32, fp16, bf16, got 'bf61'; did you mean 'bf16'?"),
        ("lr", "must be auto, none, or knobs such as"),
        ("lr=1,compile", "compile has no value; write compile=VALUE"),
        ("lr=1,lr=2", "lr is given twice; leave one out"),
        ("batch_size=0", "must be at least 1, got 0"),
        ("", "must be auto, none, or knobs such as"),
    ],
)
def test_what_is_wrong_is_said_with_what_is_allowed(text: str, message: str) -> None:
    with pytest.raises(InputError, match="--baseline") as refused:
        read_baseline(text)
    assert message in refused.value.messages[0]


def test_everything_that_is_wrong_is_said_at_once() -> None:
    with pytest.raises(InputError) as refused:
        read_baseline("precison=fp32,compile=of,lr=0")
    assert len(refused.value.messages) == 3


@given(
    st.dictionaries(st.sampled_from(sorted(VALUES)), st.none(), min_size=1).flatmap(
        lambda names: st.fixed_dictionaries({name: VALUES[name] for name in names})
    )
)
def test_its_spelling_is_read_back_as_the_same(values: dict[str, object]) -> None:
    parsed = {name: parse_knob(name, value) for name, value in values.items()}
    baseline = Baseline(values=tuple((name, parsed[name]) for name in KNOBS if name in parsed))
    assert read_baseline(baseline.text).baseline == baseline


def test_it_is_met_by_the_configurations_that_it_does_not_change() -> None:
    def knobs(precision: str, mode: str) -> tuple[object, ...]:
        return tuple(config_to_mapping(config(precision, compile=mode)).values())

    assert EAGER_FP32.is_met_by(knobs("fp32", "off"))
    assert not EAGER_FP32.is_met_by(knobs("fp32", "default"))
    assert EAGER_FP32.twin_of(knobs("bf16", "default")) == knobs("fp32", "off")
    assert EAGER_FP32.values == (("precision", Precision.FP32), ("compile", CompileMode.OFF))


def test_runs_that_asked_for_the_same_share_it_and_others_have_the_usual_one() -> None:
    assert shared_choice(["precision=bf16", "precision=bf16"]).text == "precision=bf16"
    assert shared_choice(["none", "auto"]).baseline == EAGER_FP32
    assert shared_choice([]).baseline == EAGER_FP32
