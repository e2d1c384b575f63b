"""`--set` and `--seed`: values of a space given on the command line."""

import pytest

from orchestrator.search_space import SearchSpace, parse_space
from tests.space_building import space_text
from trainables.errors import InputError
from trainables.specs import CompileMode, MeasurementProtocol


def overridden(*overrides: str, text: str | None = None, seed: int | None = None) -> SearchSpace:
    return parse_space(text or space_text(), name="x.yaml", overrides=overrides, seed=seed)


def refusal(*overrides: str, seed: int | None = None) -> tuple[str, ...]:
    with pytest.raises(InputError) as caught:
        overridden(*overrides, seed=seed)
    return caught.value.messages


def test_a_dotted_key_sets_what_is_in_it_and_leaves_the_rest() -> None:
    space = overridden("knobs.lr=[0.001,3e-3]", "dataset_args.root=/x", "dataset_args.train_limit=100")
    assert [config.lr for config in space.grid().configs] == [0.001, 0.003]
    assert space.dataset_args == {"root": "/x", "train_limit": 100}


def test_a_value_is_yaml() -> None:
    space = overridden("model=resnet18", "knobs.compile=off", "model_args={width: 2}", "knobs.lr={uniform: [0.1, 1]}")
    assert (space.model, space.model_args, space.is_random) == ("resnet18", {"width": 2}, True)
    assert space.sample(0).compile is CompileMode.OFF


def test_a_value_may_hold_an_equals_sign() -> None:
    assert overridden("constraints=['lr == 0.001']").constraints[0].text == "lr == 0.001"


def test_the_later_of_two_counts() -> None:
    assert overridden("epochs=2", "epochs=3").protocol.epochs == 3


def test_epochs_and_max_steps_take_each_other_away() -> None:
    assert overridden("max_steps=9").protocol == MeasurementProtocol(max_steps=9)
    text = space_text(epochs=None, max_steps=5)
    assert overridden("epochs=9", text=text).protocol == MeasurementProtocol(epochs=9)
    assert refusal("epochs=9", "max_steps=9") == ("--set max_steps: is given beside epochs; leave one of them out",)


def test_the_seed_of_the_command_line_counts() -> None:
    assert overridden(seed=7, text=space_text(seed=3)).seed == 7
    assert refusal(seed=-1) == ("--seed: must be at least 0, got -1",)


def test_a_resolved_space_holds_what_was_set() -> None:
    space = overridden("knobs.lr=[0.001,3e-3]", seed=7)
    assert parse_space(space.to_yaml(), name="space.yaml") == space


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("epochs", "--set epochs: must be KEY=VALUE, such as epochs=2 or knobs.lr=[0.001,0.003]"),
        ("=3", "--set =3: must be KEY=VALUE, such as epochs=2 or knobs.lr=[0.001,0.003]"),
        ("knobs..lr=3", "--set knobs..lr=3: must be KEY=VALUE, such as epochs=2 or knobs.lr=[0.001,0.003]"),
        ("epochs=", "--set epochs: is empty"),
        ("epochs=two", "--set epochs: must be a whole number of at least 1, got 'two'"),
        ("knobs.lr=0", "--set knobs.lr: must be above 0, got 0"),
        ("knobs.lr=[1e-3, fast]", "--set knobs.lr: must be a number, got 'fast'"),
        ("knobs.lr.low=1", "--set knobs.lr.low: knobs.lr is 0.001, which has no keys; set it whole"),
        ("knobs=3", "--set knobs: must be a mapping of precision, batch_size, compile, lr, num_workers"),
        ("knobs.lrr=1", "--set knobs.lrr: there is no such key; there are precision, batch_size, compile, lr"),
        ("epoch=1", "--set epoch: there is no such key; there are model, model_args"),
        ("knob.lr=1", "--set knob.lr: knob: there is no such key; there are model, model_args"),
        ("configs=[{lr: 0}]", "--set configs: configs[0].lr: must be above 0, got 0"),
        ("model_args={a: 1, a: 2}", "--set model_args: a: is given twice; leave one of them out"),
    ],
)
def test_a_fault_names_the_option(override: str, message: str) -> None:
    (found, *_) = refusal(override)
    assert found.startswith(message)


def test_every_fault_is_reported_at_once() -> None:
    assert len(refusal("epochs=0", "x", "knobs.lr=0", seed=-1)) == 4
