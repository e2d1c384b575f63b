"""The baselines and twins that a plan lacks: the cheapest set that gives every trial one."""

import itertools
import random

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.baseline_choice import EAGER_FP32, Baseline
from orchestrator.twin_plan import AddedTrials, added_trials
from tests.built_outcomes import config
from trainables.specs import MeasurementProtocol, Precision, TrainingConfig, config_to_mapping

EPOCHS = MeasurementProtocol(epochs=1)


def added(*configs: TrainingConfig, baseline: Baseline = EAGER_FP32, refused: tuple[str, ...] = ()) -> AddedTrials:
    """`refused`: precisions that a constraint leaves out."""
    return added_trials(configs, baseline, allows=lambda candidate: candidate.precision not in refused, protocol=EPOCHS)


def differing(one: TrainingConfig, other: TrainingConfig) -> set[str]:
    first, second = config_to_mapping(one), config_to_mapping(other)
    return {name for name in first if first[name] != second[name]}


def has_twin(one: TrainingConfig, planned: list[TrainingConfig]) -> bool:
    return any(len(differing(one, other)) == 1 for other in planned)


def test_one_baseline_serves_every_precision_and_compiled_variant() -> None:
    configs = [config(*knobs) for knobs in itertools.product(["bf16", "fp16"], [64, 256], ["off", "default"])]
    assert added(*configs) == AddedTrials(baselines=(config("fp32", 64), config("fp32", 256)))


def test_a_plan_that_has_everything_is_left_alone() -> None:
    configs = [config(*knobs) for knobs in itertools.product(["fp32", "bf16"], [64, 256], ["off", "default"])]
    assert added(*configs) == AddedTrials()
    assert added(config()) == AddedTrials()


def test_a_configuration_two_knobs_from_its_baseline_gets_a_twin_between_them() -> None:
    """Uncompiled bf16 rather than compiled fp32: it compiles nothing."""
    assert added(config("bf16", compile="default")) == AddedTrials(baselines=(config("fp32"),), twins=(config("bf16"),))


def test_a_twin_that_serves_more_goes_before_a_cheaper_one() -> None:
    both = [config(precision, compile="default", num_workers=2) for precision in ("bf16", "fp16")]
    apart = [both[0], config("fp16", 256, "default", num_workers=4)]
    found = added(*apart)
    assert found.baselines == (config("fp32", num_workers=2), config("fp32", 256, num_workers=4))
    assert len(found.twins) == 2
    assert all(has_twin(one, [*apart, *found.configs]) for one in apart)
    assert added(*both).twins == ()


def test_a_baseline_that_a_constraint_leaves_out_is_not_added_and_counted() -> None:
    found = added(config("bf16"), config("bf16", 256), refused=("fp32",))
    assert found == AddedTrials(excluded_baselines=2)


def test_a_baseline_of_other_knobs_is_added_likewise() -> None:
    small = Baseline(values=(("batch_size", 64),))
    assert added(config("bf16", 256), config("bf16", 512), baseline=small).baselines == (config("bf16", 64),)


def test_knobs_that_are_held_are_not_changed_for_a_twin() -> None:
    apart = [config("fp32", 64, lr=1e-3), config("fp32", 256, lr=4e-3)]
    free = added_trials(apart, EAGER_FP32, allows=lambda _: True, protocol=EPOCHS)
    held = added_trials(apart, EAGER_FP32, allows=lambda _: True, protocol=EPOCHS, held=("batch_size", "lr"))
    assert len(free.twins) == 1
    assert held == AddedTrials()


KNOBS = {
    "precision": st.sampled_from(["fp32", "bf16", "fp16"]),
    "batch_size": st.sampled_from([32, 64, 128]),
    "compile": st.sampled_from(["off", "default"]),
    "lr": st.sampled_from([1e-3, 2e-3]),
    "num_workers": st.sampled_from([0, 2]),
}
spaces = st.lists(st.builds(config, **KNOBS), min_size=1, max_size=12, unique=True)


@given(spaces)
def test_every_trial_then_has_its_baseline_and_a_twin(configs: list[TrainingConfig]) -> None:
    found = added(*configs)
    planned = [*configs, *found.configs]
    assert len(set(planned)) == len(planned)
    assert all(EAGER_FP32.of(one) in planned for one in configs)
    varied = len({name for one in planned for name in differing(one, planned[0])})
    assert all(has_twin(one, planned) for one in configs) or varied == 0


@given(spaces, st.randoms(use_true_random=False))
def test_what_is_added_does_not_depend_on_the_order(configs: list[TrainingConfig], shuffle: random.Random) -> None:
    before = added(*configs)
    shuffled = list(configs)
    shuffle.shuffle(shuffled)
    again = added(*shuffled)
    assert set(again.baselines) == set(before.baselines)
    assert len(again.twins) == len(before.twins)


@given(spaces)
def test_no_constraint_is_broken_for_a_twin(configs: list[TrainingConfig]) -> None:
    found = added(*configs, refused=("fp32",))
    assert all(one.precision is not Precision.FP32 for one in found.configs)
    assert found.excluded_baselines == len({EAGER_FP32.of(one) for one in configs} - set(configs))
