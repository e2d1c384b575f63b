"""Search spaces: what a file expands to, and how it is refused."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.search_space import SearchSpace, load_space, parse_space
from tests.space_building import MAIN, configurations, constraint_lists, distributions, grids, space_text
from trainables.errors import InputError
from trainables.knob_values import parse_knob
from trainables.lr_rule import LrRule
from trainables.specs import CompileMode, MeasurementProtocol, Precision, TrainingConfig


def read(text: str, *overrides: str, seed: int | None = None) -> SearchSpace:
    return parse_space(text, name="x.yaml", overrides=overrides, seed=seed)


def read_unless_all_is_left_out(text: str) -> SearchSpace | None:
    try:
        return read(text)
    except InputError as error:
        if "left out" in str(error):
            return None
        raise


def refusal(act: Callable[[], object]) -> tuple[str, ...]:
    with pytest.raises(InputError) as caught:
        act()
    return caught.value.messages


def pairs(space: SearchSpace) -> list[tuple[int, float]]:
    return [(config.batch_size, config.lr) for config in space.grid().configs]


def test_a_list_is_a_grid_and_a_scalar_is_fixed() -> None:
    space = read(space_text(knobs={"batch_size": [64, 256], "lr": [1e-3, 3e-3], "compile": True}))
    grid = space.grid()
    assert pairs(space) == [(64, 1e-3), (64, 3e-3), (256, 1e-3), (256, 3e-3)]
    assert {config.compile for config in grid.configs} == {CompileMode.DEFAULT}
    assert (grid.merged_duplicates, grid.excluded_by_constraints) == (0, 0)
    assert not space.is_random


def test_the_last_knob_of_the_file_varies_fastest() -> None:
    text = space_text(knobs={"batch_size": [64, 256], "lr": [1e-3, 3e-3]})
    turned = text.replace("  batch_size: [64, 256]\n", "").replace(
        "lr: [0.001, 0.003]", "lr: [0.001, 0.003]\n  batch_size: [64, 256]"
    )
    assert pairs(read(turned)) == [(64, 1e-3), (256, 1e-3), (64, 3e-3), (256, 3e-3)]


def test_the_same_value_written_twice_is_one_value_and_is_counted() -> None:
    text = (
        space_text()
        .replace("lr: 0.001", "lr: [1e-3, 3e-4, 0.001, 1.0e-3]")
        .replace("compile: false", "compile: [off, false]")
    )
    grid = read(text).grid()
    assert [config.lr for config in grid.configs] == [1e-3, 3e-4]
    assert grid.merged_duplicates == 6


def test_explicit_configurations_come_first_and_inherit_the_single_values() -> None:
    config = {"precision": "bf16", "batch_size": 8, "lr": 0.1, "compile": "max-autotune"}
    space = read(space_text(knobs={"batch_size": [64, 256], "weight_decay": 0.5}, configs=[config, config]))
    first, *product = space.grid().configs
    assert first == TrainingConfig(
        precision=Precision.BF16,
        batch_size=8,
        compile=CompileMode.MAX_AUTOTUNE,
        lr=0.1,
        num_workers=0,
        weight_decay=0.5,
    )
    assert [config.batch_size for config in product] == [64, 256]
    assert space.grid().merged_duplicates == 1


def test_single_values_that_leave_out_a_main_knob_make_no_configuration_of_their_own() -> None:
    text = yaml.safe_dump({"model": "digits_cnn", "dataset": "digits", "epochs": 1, "knobs": {"num_workers": 2}})
    own = [{key: value for key, value in MAIN.items() if key != "num_workers"}, MAIN]
    space = read(text + yaml.safe_dump({"configs": own}))
    assert [config.num_workers for config in space.grid().configs] == [2, 0]


def test_constraints_leave_out_and_are_counted() -> None:
    knobs = {"batch_size": [32, 64], "compile": [False, True]}
    space = read(space_text(knobs=knobs, constraints=["not (compile == 'default' and batch_size < 64)"]))
    assert {(config.batch_size, config.compile.value) for config in space.grid().configs} == {
        (32, "off"),
        (64, "off"),
        (64, "default"),
    }
    assert space.grid().excluded_by_constraints == 1


def test_constraints_hold_for_explicit_configurations_too() -> None:
    space = read(space_text(configs=[{"batch_size": 8}], constraints=["batch_size >= 64"]))
    assert (len(space.grid().configs), space.grid().excluded_by_constraints) == (1, 1)


def test_constraints_that_leave_nothing_are_refused() -> None:
    text = space_text(knobs={"batch_size": [32, 64]}, constraints=["batch_size > 64", "lr < 1"])
    assert refusal(lambda: read(text)) == (
        "x.yaml:10: constraints: all 2 configurations are left out; loosen a constraint, or give other values",
    )


def test_a_constraint_that_cannot_be_decided_is_named() -> None:
    (message,) = refusal(lambda: read(space_text(constraints=["lr < 1 and gradient_clip_norm < 1"])))
    assert message.startswith("x.yaml:10: constraints: lr < 1 and gradient_clip_norm < 1: cannot be decided for")


@pytest.mark.parametrize(("rule", "expected"), [("linear", 0.004), ("sqrt", 0.002), ("none", 0.001)])
def test_the_learning_rate_follows_the_batch_size_by_the_rule(rule: str, expected: float) -> None:
    text = space_text(knobs={"batch_size": [64, 256]}, lr_rule=rule, lr_reference_batch_size=64)
    assert pairs(read(text)) == [(64, 0.001), (256, expected)]


def test_scaled_learning_rates_are_rounded_so_that_identities_are_stable() -> None:
    text = space_text(knobs={"batch_size": [7, 96]}, lr_rule="linear", lr_reference_batch_size=96)
    assert pairs(read(text)) == [(7, 7.29166666667e-05), (96, 0.001)]


def test_constraints_see_the_learning_rate_as_written() -> None:
    text = space_text(
        knobs={"batch_size": [64, 256]}, lr_rule="linear", lr_reference_batch_size=64, constraints=["lr == 0.001"]
    )
    assert len(read(text).grid().configs) == 2


def test_a_rule_that_makes_no_usable_learning_rate_is_refused() -> None:
    text = space_text(knobs={"lr": 1e-323}, lr_rule="linear", lr_reference_batch_size=2**31 - 1)
    (message,) = refusal(lambda: read(text))
    assert message.startswith("lr_rule: lr 9.88131e-324 scaled to batch_size 64 must be above 0")


def test_the_rest_of_a_space_reaches_the_trial() -> None:
    space = read(
        space_text(
            epochs=None,
            max_steps=5000,
            report_every_steps=500,
            model="my_package.models:build",
            model_args={"width": 3},
            dataset="fashion_mnist",
            dataset_args={"root": "/data", "train_limit": 2560},
            num_classes=7,
            seed=5,
        )
    )
    spec = space.spec(space.grid().configs[0], replicate=2, code_fingerprint="c", data_fingerprint="d")
    assert (spec.model, spec.model_args) == ("my_package.models:build", {"width": 3})
    assert (spec.dataset, spec.dataset_args) == ("fashion_mnist", {"root": "/data", "train_limit": 2560})
    assert spec.protocol == MeasurementProtocol(max_steps=5000, report_every_steps=500)
    assert (spec.num_classes, spec.seed, spec.replicate, spec.training_seed) == (7, 5, 2, 7)
    assert (spec.code_fingerprint, spec.data_fingerprint) == ("c", "d")


@pytest.mark.parametrize(
    "model", ["fashion_cnn", "resnet18", "timm:convnext_tiny", "a:b", "my_package.my_module:Net.make"]
)
def test_models_are_built_in_torchvisions_timms_or_ones_own(model: str) -> None:
    assert read(space_text(model=model)).model == model


def test_loader_options_that_need_workers_stay_legal_without_any() -> None:
    text = space_text(knobs={"num_workers": [0, 2], "persistent_workers": [True], "prefetch_factor": [2]})
    assert [config.num_workers for config in read(text).grid().configs] == [0, 2]


BAD = """\
modle: digits_cnn
dataset: digts
dataset_args:
  root: /data
  train_limit: 0
epochs: 2
max_steps: 10
seed: 010
knobs:
  precision: [none, fp32]
  batch_size: [32.0, true]
  compile: []
  lr: {logunform: [1e-4, 1e-2]}
  num_workers: {}
  weight_decay: 0.1
  weight_decay: 0.2
configs:
  - {lr: [1], foo: 3, precision: fp32}
  - 3
constraints:
  - precision == 'bf61'
lr_rule: linear
"""


def test_every_fault_of_a_file_is_reported_at_once() -> None:
    messages = refusal(lambda: read(BAD, "epochs.x=1", "nothing", "report_every_steps=[", seed=-1))
    assert [message.partition(", got")[0].partition("; there")[0] for message in messages] == [
        "x.yaml:1: modle: there is no such key",
        "x.yaml:1: model: is missing; every file names a model and a dataset",
        "x.yaml:2: dataset: must be one of digits, digits28, synthetic, image_folder, torchvision's classification "
        "data sets, or package.module:callable",
        "x.yaml:5: dataset_args.train_limit: must be at least 1",
        "x.yaml:8: seed: 010 is octal to some readers and decimal to others; write 10, or '010' for text",
        "x.yaml:10: knobs.precision: must be one of fp32, tf32, fp16, bf16",
        "x.yaml:11: knobs.batch_size: must be a whole number of at least 1",
        "x.yaml:11: knobs.batch_size: must be a whole number of at least 1",
        "x.yaml:12: knobs.compile: must be a list of at least one value",
        "x.yaml:13: knobs.lr: must have exactly one of uniform, loguniform, randint, choice",
        "x.yaml:14: knobs.num_workers: must have exactly one of uniform, loguniform, randint, choice",
        "x.yaml:16: knobs.weight_decay: is given twice, first in line 15; leave one of them out",
        "x.yaml:18: configs[0].foo: there is no such key",
        "x.yaml:18: configs[0].lr: must be a number",
        "x.yaml:18: configs[0]: batch_size, compile missing; a configuration gives them itself, or knobs gives a "
        "single value",
        "x.yaml:19: configs[1]: must be a mapping of precision, batch_size, compile, lr, num_workers, weight_decay, "
        "optimizer, gradient_clip_norm, channels_last, prefetch_factor, persistent_workers",
        "x.yaml:21: constraints: compares precision with 'bf61', which it never is: must be one of fp32, tf32, fp16, "
        "bf16",
        "x.yaml:22: lr_rule: linear needs lr_reference_batch_size, the batch size at which lr is right",
        "--set nothing: must be KEY=VALUE, such as epochs=2 or knobs.lr=[0.001,0.003]",
        "--set report_every_steps: is not valid YAML: while parsing a flow node, expected the node content, but found "
        "'<stream end>'",
        "--set epochs.x: epochs: must be a whole number of at least 1",
        "--seed: must be at least 0",
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epochs": None}, "x.yaml:1: epochs: is missing; give epochs, or max_steps where an epoch is long"),
        ({"max_steps": 3}, "x.yaml:10: max_steps: is given beside epochs; leave one of them out"),
        ({"model": 3}, "x.yaml:1: model: must be a name, got 3"),
        ({"model": "a b:c"}, "x.yaml:1: model: must be written package.module:callable, got 'a b:c'"),
        ({"model_args": [1]}, "x.yaml:10: model_args: must be a mapping of arguments, got a list; write {} for none"),
        ({"num_classes": 1}, "x.yaml:10: num_classes: must be at least 2, got 1"),
        ({"configs": {}}, "x.yaml:10: configs: must be a list, got a mapping; write [] for none"),
        ({"constraints": "lr < 1"}, "x.yaml:10: constraints: must be a list, got 'lr < 1'; write [] for none"),
        ({"lr_rule": False}, "x.yaml:10: lr_rule: must be one of none, linear, sqrt, got false"),
        (
            {"knobs": None},
            "x.yaml:4: knobs: precision missing; every configuration has precision, batch_size, compile, lr",
        ),
    ],
)
def test_a_fault_names_its_line_and_key(change: dict[str, Any], message: str) -> None:
    text = space_text(**change)
    if "knobs" in change:
        text = space_text().replace("  precision: fp32\n", "")
    (found,) = refusal(lambda: read(text))
    assert found.startswith(message)


def test_a_space_without_knobs_and_configurations_is_refused() -> None:
    (message,) = refusal(lambda: read("model: digits_cnn\ndataset: digits\nepochs: 1\n"))
    assert message.startswith("x.yaml:1: knobs: precision, batch_size, compile, lr, num_workers missing")


@pytest.mark.parametrize("text", ["[]", "hello", "3"])
def test_a_file_that_is_no_mapping_is_refused(text: str) -> None:
    (message,) = refusal(lambda: read(text))
    assert message.startswith("x.yaml:1: must be a mapping of model, model_args, dataset")


def test_a_grid_of_absurd_size_is_refused_and_can_still_be_drawn_from() -> None:
    space = read(
        space_text(knobs={"batch_size": list(range(1, 1001)), "lr": [value / 1000 for value in range(1, 1001)]})
    )
    (message,) = refusal(space.grid)
    assert message.startswith("knobs: 1,000,000 configurations are more than a grid may have (100,000)")
    assert space.sample(7) == space.sample(7) != space.sample(8)


def test_a_distribution_makes_a_space_random() -> None:
    space = read(space_text(knobs={"lr": {"loguniform": [1e-4, 1e-2]}, "batch_size": [64, 256]}))
    drawn = [space.sample(index) for index in range(200)]
    assert space.is_random
    assert all(1e-4 <= config.lr <= 1e-2 for config in drawn)
    assert {config.batch_size for config in drawn} == {64, 256}
    assert refusal(space.grid) == ("knobs: a distribution has no grid; give --search random, or list the values",)


def test_a_random_space_gives_its_explicit_configurations_first() -> None:
    knobs = {"lr": {"uniform": [0.1, 0.2]}}
    space = read(space_text(knobs=knobs, configs=[{"lr": 0.5}, {"lr": 0.6}, {"lr": 0.5}], constraints=["lr != 0.6"]))
    assert space.sample(0).lr == 0.5
    assert 0.1 <= space.sample(1).lr <= 0.2


def test_draws_satisfy_the_constraints() -> None:
    space = read(space_text(knobs={"batch_size": {"randint": [1, 100]}}, constraints=["batch_size in (17, 23)"]))
    assert {space.sample(index).batch_size for index in range(20)} == {17, 23}


def test_constraints_that_no_draw_satisfies_are_refused() -> None:
    text = space_text(knobs={"batch_size": {"randint": [1, 100]}}, constraints=["batch_size > 100"])
    assert refusal(lambda: read(text)) == (
        "x.yaml:11: constraints: none of 10,000 draws satisfies them; loosen a constraint, or give other values",
    )


def test_draws_depend_on_the_seed_and_the_index_alone() -> None:
    text = space_text(knobs={"lr": {"loguniform": [1e-4, 1e-2]}})
    drawn = [read(text).sample(index) for index in range(5)]
    backwards = read(text)
    assert [backwards.sample(index) for index in reversed(range(5))] == drawn[::-1]
    assert [read(text, seed=1).sample(index) for index in range(5)] != drawn
    assert [config.lr for config in drawn[:2]] == [0.00286502, 0.00551203]


def test_another_knob_leaves_the_draws_of_the_rest_alone() -> None:
    knobs = {"lr": {"loguniform": [1e-4, 1e-2]}}
    alone = read(space_text(knobs=knobs))
    beside = read(space_text(knobs={**knobs, "weight_decay": {"uniform": [0, 1]}}))
    assert [alone.sample(index).lr for index in range(5)] == [beside.sample(index).lr for index in range(5)]


def test_draws_before_zero_are_a_mistake_of_the_program() -> None:
    with pytest.raises(ValueError, match="counted from 0"):
        read(space_text()).sample(-1)


def test_a_grid_is_drawn_without_replacement_and_then_again() -> None:
    space = read(space_text(knobs={"batch_size": [1, 2, 3], "lr": [0.1, 0.2]}))
    drawn = [space.sample(index) for index in range(12)]
    assert set(drawn[:6]) == set(space.grid().configs)
    assert drawn[:6] == drawn[6:]
    assert drawn[:6] != list(space.grid().configs)


def test_a_longer_grid_keeps_the_order_of_its_part() -> None:
    short = read(space_text(knobs={"batch_size": [1, 2, 3]}))
    long = read(space_text(knobs={"batch_size": [1, 2, 3, 4, 5]}))
    part = [config for config in (long.sample(index) for index in range(5)) if config.batch_size < 4]
    assert part == [short.sample(index) for index in range(3)]


def test_a_file_is_found_by_its_path(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(space_text(model="fashion_cnn"))
    assert load_space(str(path)).model == "fashion_cnn"


@given(grids, st.lists(configurations, max_size=2), constraint_lists)
def test_every_configuration_is_planned_merged_or_excluded(
    knobs: dict[str, Any], configs: list[dict[str, Any]], constraints: list[str]
) -> None:
    text = space_text(knobs=knobs, configs=configs, constraints=constraints)
    space = read_unless_all_is_left_out(text)
    if space is None:
        return
    grid = space.grid()
    asked = len(configs)
    product = 1
    for values in knobs.values():
        product *= len(values) if isinstance(values, list) else 1
    assert len(grid.configs) + grid.merged_duplicates + grid.excluded_by_constraints == asked + product
    assert len({space.spec(config).trial_id for config in grid.configs}) == len(grid.configs)
    assert read(text).grid() == grid


@given(grids)
def test_a_grid_is_the_product_of_its_distinct_values(knobs: dict[str, Any]) -> None:
    product = 1
    for name, values in knobs.items():
        listed = values if isinstance(values, list) else [values]
        product *= len({parse_knob(name, value) for value in listed})
    assert len(read(space_text(knobs=knobs)).grid().configs) == product


@given(
    grids | distributions,
    st.lists(configurations, max_size=2),
    constraint_lists,
    st.sampled_from(LrRule),
    st.fixed_dictionaries(
        {
            "seed": st.integers(0, 2**31 - 1),
            "dataset_args": st.dictionaries(st.text("abc", min_size=1), st.floats(0, 1)),
        },
        optional={
            "num_classes": st.integers(2, 1000),
            "report_every_steps": st.integers(1, 1000),
            "schedule_epochs": st.integers(1000, 2000),
        },
    ),
)
def test_a_resolved_space_reads_back_equal(
    knobs: dict[str, Any],
    configs: list[dict[str, Any]],
    constraints: list[str],
    rule: LrRule,
    rest: dict[str, Any],
) -> None:
    text = space_text(
        knobs=knobs, configs=configs, constraints=constraints, lr_rule=rule, lr_reference_batch_size=128, **rest
    )
    space = read_unless_all_is_left_out(text)
    if space is None:
        return
    again = read(space.to_yaml())
    assert again == space
    assert again.to_yaml() == space.to_yaml()
    assert list(again.knobs) == list(space.knobs)
    assert [again.sample(index) for index in range(3)] == [space.sample(index) for index in range(3)]
    if not space.is_random:
        assert again.grid() == space.grid()


@given(distributions, st.integers(0, 50), st.integers(0, 5))
def test_a_draw_is_the_same_whatever_was_drawn_before(knobs: dict[str, Any], index: int, before: int) -> None:
    text = space_text(knobs=knobs)
    space = read(text)
    for earlier in range(before):
        space.sample(earlier)
    assert space.sample(index) == read(text).sample(index)


@pytest.mark.parametrize(
    ("length", "than"), [({"epochs": 5}, "and epochs 5"), ({"epochs": None, "max_steps": 9}, "without epochs")]
)
def test_a_schedule_shorter_than_the_training_is_refused(length: dict[str, Any], than: str) -> None:
    (message,) = refusal(lambda: read(space_text(schedule_epochs=4, **length)))
    assert f"schedule_epochs: must be at least epochs, got 4 {than}" in message
