"""The ready spaces: found by name, and each what its file promises."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.search_space import load_space
from orchestrator.space_files import find_space, ready_spaces
from trainables.errors import InputError
from trainables.specs import MAIN_KNOBS, CompileMode, Precision, TrainingConfig, config_to_mapping

NAMES = ("compile", "data_loading", "full", "precision", "quick", "reference")


def differing(one: TrainingConfig, other: TrainingConfig) -> set[str]:
    values, others = config_to_mapping(one), config_to_mapping(other)
    return {name for name in values if values[name] != others[name]}


def quick() -> tuple[TrainingConfig, ...]:
    return load_space(None).grid().configs


def test_there_are_the_ready_spaces() -> None:
    assert tuple(ready_spaces()) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_ready_space_is_found_by_its_name_and_says_what_it_answers(name: str) -> None:
    text, source = find_space(name)
    assert source == f"search_spaces/{name}.yaml"
    assert load_space(name).grid().merged_duplicates == 0
    head = "".join(line for line in text.splitlines() if line.startswith("#"))
    assert "?" in head or name == "full"


@pytest.mark.parametrize("name", NAMES)
def test_every_line_of_a_ready_space_fits(name: str) -> None:
    assert max(map(len, find_space(name)[0].splitlines())) <= 120


def test_the_default_is_quick() -> None:
    assert load_space(None) == load_space("quick")


def test_a_ready_space_goes_before_a_folder_of_that_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "quick").mkdir()
    assert load_space("quick").model == "digits_cnn"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("qick", "qick: there is no such file or ready space; the ready spaces are {}; did you mean 'quick'?"),
        ("quick.yaml", "quick.yaml: there is no such file; the ready spaces are {}; did you mean 'quick'?"),
        (
            "my/precison.yml",
            "my/precison.yml: there is no such file; the ready spaces are {}; did you mean 'precision'?",
        ),
        ("zzz", "zzz: there is no such file or ready space; the ready spaces are {}"),
    ],
)
def test_a_name_that_is_not_there_is_refused_with_the_nearest(
    source: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as caught:
        load_space(source)
    assert caught.value.messages == (message.format(", ".join(NAMES)),)


def test_quick_holds_both_values_of_every_main_knob() -> None:
    configs = quick()
    assert len(configs) == 10
    assert {config.precision for config in configs} == {Precision.FP32, Precision.BF16}
    assert {config.batch_size for config in configs} == {64, 256}
    assert {config.compile for config in configs} == {CompileMode.OFF, CompileMode.DEFAULT}
    assert {config.lr for config in configs} == {1e-3, 2e-3, 4e-3}
    assert {config.num_workers for config in configs} == {0, 2}


def test_quick_compiles_so_few_that_it_ends_in_about_a_minute() -> None:
    assert sum(config.compile is CompileMode.DEFAULT for config in quick()) == 1
    assert load_space("quick").protocol.epochs == 8


def test_every_configuration_of_quick_has_its_twins() -> None:
    configs = quick()
    for config in configs:
        twins = [differing(config, other) for other in configs]
        assert any(twin in ({"precision"}, {"compile"}, {"lr"}, {"num_workers"}) for twin in twins)


def test_every_configuration_of_quick_has_its_uncompiled_fp32_baseline() -> None:
    configs = quick()
    for config in configs:
        baselines = [c for c in configs if c.precision is Precision.FP32 and c.compile is CompileMode.OFF]
        assert any(differing(config, baseline) <= {"precision", "compile"} for baseline in baselines)


def test_quick_still_has_trials_when_a_knob_is_set() -> None:
    counts = {
        override: len(load_space("quick", overrides=[override]).grid().configs)
        for override in ("knobs.lr=[0.001,0.01]", "knobs.lr=0.01", "knobs.precision=fp32", "knobs.compile=off")
    }
    assert counts == {
        "knobs.lr=[0.001,0.01]": 8,
        "knobs.lr=0.01": 6,
        "knobs.precision=fp32": 9,
        "knobs.compile=off": 9,
    }


def test_reference_is_the_recipe_with_every_knob_around_it() -> None:
    space = load_space("reference")
    assert (space.model, space.dataset, space.protocol.epochs) == ("fashion_cnn", "fashion_mnist", 20)
    configs = space.grid().configs
    assert {config.precision for config in configs} == {Precision.FP32, Precision.FP16, Precision.BF16}
    assert {config.weight_decay for config in configs} == {1e-2}
    recipe = TrainingConfig(precision=Precision.FP32, batch_size=128, compile=CompileMode.OFF, lr=3e-4, num_workers=0)
    assert recipe in configs
    for name in MAIN_KNOBS:
        assert len({config_to_mapping(config)[name] for config in configs}) > 1
    scaled = {(config.batch_size / 128, config.lr) for config in configs}
    assert {(4, 1.2e-3), (4, 6e-4)} <= scaled


def test_the_trials_that_a_head_promises_are_those_there_are() -> None:
    for name in NAMES:
        promised = list(_counts(find_space(name)[0]))
        assert promised in ([], [len(load_space(name).grid().configs)]), name


def _counts(text: str) -> Iterator[int]:
    head = " ".join(line.lstrip("# ") for line in text.splitlines() if line.startswith("#"))
    yield from (int(count.replace(",", "")) for count in re.findall(r"([\d,]+) trials", head))
