"""search_spaces/README.md, held to the code: keys, knobs, defaults, values, distributions, spaces, examples, errors."""

import re
from dataclasses import Field, fields
from pathlib import Path
from typing import Any

import pytest
import yaml

from orchestrator.distributions import DISTRIBUTIONS
from orchestrator.search_space import SearchSpace, load_space, parse_space
from orchestrator.space_files import ready_spaces
from tests.space_building import space_text
from trainables.errors import InputError
from trainables.knob_values import KNOB_RULES, parse_knob
from trainables.spec_door import SPACE_KEYS
from trainables.specs import MAIN_KNOBS, TrainingConfig

README = Path(__file__).resolve().parents[1] / "search_spaces" / "README.md"
TEXT = README.read_text()


def table(heading: str) -> dict[str, list[str]]:
    """The rows of the table whose first heading is `heading`: the code in the first cell → the other cells."""
    lines = TEXT.splitlines()
    start = next(index for index, line in enumerate(lines) if line.startswith(f"| {heading} |"))
    rows = {}
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        first, *rest = [cell.strip() for cell in line.strip("|").split("|")]
        rows[first.strip("`")] = rest
    return rows


def blocks(language: str) -> list[str]:
    found = re.findall(r"^```(\w*)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    return [block for name, block in found if name == language]


def completed(block: str) -> str:
    """A fragment with the keys that it leaves out taken from a whole space."""
    whole = yaml.safe_load(space_text())
    given = yaml.compose(block)
    assert isinstance(given, yaml.MappingNode)
    written = {key.value for key, _ in given.value}
    left = {key: value for key, value in whole.items() if key not in written}
    return block + (yaml.safe_dump(left) if left else "")


def test_every_ready_space_is_listed_with_the_number_of_its_trials() -> None:
    rows = table("name")
    assert set(rows) == set(ready_spaces())
    for name, (trials, *_) in rows.items():
        assert int(trials) == len(load_space(name).grid().configs)


def test_every_key_is_documented_in_its_order() -> None:
    assert tuple(table("key")) == SPACE_KEYS


@pytest.mark.parametrize("key", SPACE_KEYS)
def test_the_default_of_a_key_is_what_leaving_it_out_means(key: str) -> None:
    default = table("key")[key][0]
    if default.startswith("required"):
        with pytest.raises(InputError, match="missing"):
            parse_space(space_text(**{key if key != "max_steps" else "epochs": None}), name="x")
    elif key == "knobs":
        assert default == "`{}`"
    elif default.startswith("`"):
        assert parse_space(space_text() + f"{key}: {default.strip('`')}\n", name="x") == parse_space(
            space_text(), name="x"
        )
    else:
        assert default in ("none", "once an epoch")


@pytest.mark.parametrize("key", ["model", "dataset"])
def test_the_names_that_a_key_lists_are_allowed(key: str) -> None:
    names = re.findall(r"`([\w.:]+)`", table("key")[key][1])
    assert len(names) > 3
    for name in names:
        parse_space(space_text(**{key: name}), name="x")


@pytest.mark.parametrize("rule", ["none", "linear", "sqrt"])
def test_the_rules_for_the_learning_rate_are_documented(rule: str) -> None:
    assert f"`{rule}`" in table("key")["lr_rule"][1]
    parse_space(space_text(lr_rule=rule, lr_reference_batch_size=64), name="x")


def test_every_knob_is_documented_with_its_allowed_values() -> None:
    assert {knob: cells[1] for knob, cells in table("knob").items()} == {
        knob: rule.allowed for knob, rule in KNOB_RULES.items()
    }


@pytest.mark.parametrize("entry", fields(TrainingConfig), ids=lambda entry: entry.name)
def test_the_default_of_a_knob_is_the_documented_one(entry: Field[Any]) -> None:
    documented = table("knob")[entry.name][0]
    if entry.name in MAIN_KNOBS:
        assert documented == "required"
    else:
        assert parse_knob(entry.name, yaml.safe_load(documented.strip("`"))) == entry.default


def test_every_distribution_is_documented() -> None:
    assert {name: cells[0] for name, cells in table("distribution").items()} == DISTRIBUTIONS


@pytest.mark.parametrize("block", blocks("yaml"))
def test_every_example_is_a_space(block: str) -> None:
    space = parse_space(completed(block), name="README.md")
    assert isinstance(space, SearchSpace)


def test_the_example_of_explicit_configurations_makes_as_many() -> None:
    (block,) = [block for block in blocks("yaml") if "configs:" in block]
    assert len(parse_space(completed(block), name="x").grid().configs) == 3


def test_every_override_that_is_shown_is_allowed() -> None:
    (block,) = [block for block in blocks("") if "--set constraints" in block]
    overrides = re.findall(r"--set (?:'([^']*)'|(\S+))", block)
    assert len(overrides) == 7
    load_space("quick", overrides=[quoted or bare for quoted, bare in overrides])


def test_the_errors_that_are_shown_are_those_of_the_file_that_is_shown() -> None:
    shown, messages = blocks("")[-2:]
    with pytest.raises(InputError) as caught:
        parse_space(shown, name="x.yaml")
    assert "\n".join(caught.value.messages) == messages.rstrip("\n")


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", TEXT):
        assert (README.parent / target).exists()
