"""From what was typed to the trials that are wanted."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.ledger import Ledger
from orchestrator.planning import Plan, Request, make_plan
from tests.builders import an_outcome
from trainables.errors import InputError

SPACE = """
model: digits_cnn
dataset: digits
epochs: 2
knobs: {precision: [fp32, bf16], batch_size: 64, compile: false, lr: [1e-3, 3e-3], num_workers: 0}
"""


@pytest.fixture
def space(tmp_path: Path) -> str:
    path = tmp_path / "mine.yaml"
    path.write_text(SPACE)
    return str(path)


def begun(space: str, tmp_path: Path, **more: Any) -> tuple[Plan, Ledger]:
    """A run whose first trial is recorded."""
    plan = make_plan(Request(space=space, name="run", storage=str(tmp_path / "runs"), **more))
    ledger = plan.ledger
    ledger.write_space(plan.space.to_yaml())
    ledger.write_environment({"asked": plan.asked})
    ledger.record(an_outcome(plan.specs[0]))
    return plan, ledger


def test_a_plan_counts_configurations_and_trials(space: str) -> None:
    plan = make_plan(Request(space=space, repeats=3, overrides=["knobs.lr=[0.001, 1e-3, 0.003]"]))
    assert plan.description == "4 configurations × 3 repeats (2 duplicates merged)"
    assert len(plan.specs) == 12
    assert [spec.replicate for spec in plan.specs] == [0] * 4 + [1] * 4 + [2] * 4
    assert plan.name.startswith("mine-")


def test_repeats_come_in_shuffled_rounds_and_one_run_each_keeps_the_order_of_the_space(space: str) -> None:
    once, thrice = (make_plan(Request(space=space, repeats=repeats)).specs for repeats in (1, 3))
    orders = [[spec.config for spec in thrice if spec.replicate == number] for number in range(3)]
    assert {*orders[0]} == {*orders[1]} == {*orders[2]} == {spec.config for spec in once}
    assert not orders[0] == orders[1] == orders[2]
    assert thrice == make_plan(Request(space=space, repeats=3)).specs


def test_automatic_repeats_plan_one_run_each_and_say_what_more_they_may_cost(space: str, tmp_path: Path) -> None:
    plan, ledger = begun(space, tmp_path, repeats="auto")
    assert plan.description == (
        "4 configurations × 1 run, and up to 4 more runs each where the first place is undecided, for at most 50 % of "
        "the first runs' time"
    )
    assert [spec.replicate for spec in plan.specs] == [0] * 4
    assert plan.asked["repeats"] == "auto"
    again = make_plan(Request(resume=ledger.storage.location))
    assert (again.specs, again.asked["repeats"]) == (plan.specs, "auto")
    with pytest.raises(InputError, match="--repeats was auto, now 2"):
        make_plan(Request(resume=ledger.storage.location, repeats=2))


def test_a_random_search_draws_as_many_as_asked_and_the_same_again(space: str) -> None:
    request = Request(
        space=space, search="random", num_samples=5, overrides=["knobs.lr={loguniform: [1e-4, 1e-1]}"], seed=7
    )
    plan = make_plan(request)
    assert len(plan.specs) == 5
    assert plan.specs == make_plan(request).specs
    assert plan.specs[:3] == make_plan(replace(request, num_samples=3)).specs


def test_a_resumed_run_has_the_same_trials_and_knows_what_is_done(space: str, tmp_path: Path) -> None:
    plan, ledger = begun(space, tmp_path, repeats=2)
    again = make_plan(Request(resume=ledger.storage.location))
    assert again.specs == plan.specs
    assert [outcome.spec for outcome in again.known] == [plan.specs[0]]
    assert again.name == "run"


def test_a_run_whose_driver_died_before_anything_else_can_be_resumed(space: str, tmp_path: Path) -> None:
    plan = make_plan(Request(space=space, name="run", storage=str(tmp_path / "runs")))
    plan.ledger.write_space(plan.space.to_yaml())
    assert make_plan(Request(resume=plan.ledger.storage.location)).specs == plan.specs


def test_a_changed_space_is_refused_with_the_difference(space: str, tmp_path: Path) -> None:
    _, ledger = begun(space, tmp_path)
    with pytest.raises(InputError) as refused:
        make_plan(Request(resume=ledger.storage.location, overrides=["knobs.lr=[0.001, 0.01]"]))
    text = refused.value.messages[0]
    assert "--extend" in text
    assert "\n  -" in text
    assert "0.003" in text
    assert "\n  +" in text
    assert "0.01" in text


def test_a_changed_number_of_repeats_is_a_change_too(space: str, tmp_path: Path) -> None:
    _, ledger = begun(space, tmp_path)
    with pytest.raises(InputError, match="--repeats was 1, now 2"):
        make_plan(Request(resume=ledger.storage.location, repeats=2))


def test_an_extension_keeps_what_is_answered_and_adds_what_is_new(space: str, tmp_path: Path) -> None:
    plan, ledger = begun(space, tmp_path)
    extended = make_plan(
        Request(resume=ledger.storage.location, extend=True, overrides=["knobs.lr=[0.001, 0.003, 0.01]"])
    )
    assert {s.trial_id for s in plan.specs} < {s.trial_id for s in extended.specs}
    assert len(extended.specs) == 6
    extended.ledger.write_space(extended.space.to_yaml())
    assert make_plan(Request(resume=ledger.storage.location)).specs == extended.specs


def test_a_grid_of_a_distribution_is_refused(space: str) -> None:
    with pytest.raises(InputError, match="--search random"):
        make_plan(Request(space=space, search="grid", overrides=["knobs.lr={uniform: [0.1, 0.2]}"]))


class TestBaselines:
    def test_a_grid_over_precision_or_compile_gets_what_it_lacks(self, space: str) -> None:
        plan = make_plan(Request(space=space, overrides=["knobs.precision=[bf16, fp16]"]))
        assert plan.description == "4 configurations + 2 baselines added by --baseline auto"
        assert [spec.label for spec in plan.specs if spec.trial_id in plan.added] == [
            "fp32-b64-eager-lr0.001-w0",
            "fp32-b64-eager-lr0.003-w0",
        ]

    def test_a_plan_that_has_its_baselines_is_left_alone(self, space: str) -> None:
        assert make_plan(Request(space=space)).description == "4 configurations"

    @pytest.mark.parametrize(
        "overrides",
        [
            ["knobs.precision=bf16"],
            ["knobs.precision=bf16", "configs=[{batch_size: 32}]", "knobs.lr=0.1"],
            ["knobs.precision={choice: [bf16, fp16]}"],
        ],
    )
    def test_what_holds_both_knobs_lists_or_draws_gets_them_only_where_that_is_asked(
        self, space: str, overrides: list[str]
    ) -> None:
        assert not make_plan(Request(space=space, overrides=overrides)).added
        asked = make_plan(Request(space=space, overrides=overrides, baseline="auto"))
        assert asked.added
        assert "added by --baseline auto" in asked.description

    def test_none_adds_nothing(self, space: str) -> None:
        plan = make_plan(Request(space=space, overrides=["knobs.precision=[bf16, fp16]"], baseline="none"))
        assert (plan.description, plan.baseline.baseline) == ("4 configurations", None)

    def test_another_baseline_is_planned_for_too(self, space: str) -> None:
        plan = make_plan(Request(space=space, baseline="batch_size=32", repeats=2))
        assert plan.description == "4 configurations + 4 baselines added by --baseline batch_size=32 × 2 repeats"
        assert len(plan.specs) == 16

    def test_a_baseline_that_a_constraint_excludes_is_not_added_and_said(self, space: str) -> None:
        """The constraint is on the learning rate as it was written, before the rule."""
        rule = ["lr_rule=linear", "lr_reference_batch_size=256", "knobs.precision=[bf16, fp16]"]
        excluding = [*rule, "constraints=[\"precision != 'fp32' or lr > 0.002\"]"]
        plan = make_plan(Request(space=space, overrides=excluding))
        assert plan.description == (
            "4 configurations + 1 baseline added by --baseline auto (1 missing baseline excluded by constraints)"
        )

    def test_a_continued_run_plans_the_same_and_a_change_needs_extend(self, space: str, tmp_path: Path) -> None:
        plan, ledger = begun(space, tmp_path, overrides=["knobs.precision=[bf16, fp16]"])
        assert make_plan(Request(resume=ledger.storage.location)).specs == plan.specs
        with pytest.raises(InputError, match="--baseline was auto, now none"):
            make_plan(Request(resume=ledger.storage.location, baseline="none"))
        changed = make_plan(Request(resume=ledger.storage.location, baseline="none", extend=True))
        assert len(changed.specs) == 4


class TestChangedCode:
    @pytest.fixture
    def entry(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        module = tmp_path / "my_nets.py"
        module.write_text("def net(): ...\n")
        monkeypatch.syspath_prepend(str(tmp_path))
        monkeypatch.chdir(tmp_path)
        return module

    def test_is_refused(self, space: str, tmp_path: Path, entry: Path) -> None:
        _, ledger = begun(space, tmp_path, overrides=["model=my_nets:net"])
        entry.write_text("def net(): return 1\n")
        with pytest.raises(InputError, match=r"the code of my_nets:net and digits changed.*--accept-changed-code"):
            make_plan(Request(resume=ledger.storage.location))

    def test_keeps_its_answers_once_it_is_accepted(self, space: str, tmp_path: Path, entry: Path) -> None:
        plan, ledger = begun(space, tmp_path, overrides=["model=my_nets:net"])
        entry.write_text("def net(): return 1\n")
        again = make_plan(Request(resume=ledger.storage.location, accept_changed_code=True))
        assert again.specs == plan.specs

    def test_is_another_trial_in_a_new_run(self, space: str, tmp_path: Path, entry: Path) -> None:
        before = make_plan(Request(space=space, overrides=["model=my_nets:net"]))
        entry.write_text("def net(): return 1\n")
        after = make_plan(Request(space=space, overrides=["model=my_nets:net"]))
        assert not {s.trial_id for s in before.specs} & {s.trial_id for s in after.specs}
