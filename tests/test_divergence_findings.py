"""What the replays of diverged trials showed, in findings, in columns, and where trials that are not ranked are."""

from typing import Any

import pytest

from orchestrator.answer import build_report
from orchestrator.divergence_columns import DIVERGENCE_COLUMNS
from orchestrator.finding_words import FindingWords, finding_words
from orchestrator.findings import Finding, FindingKind
from orchestrator.outcome_words import not_ranked_groups
from orchestrator.results_table import results_table
from tests.built_outcomes import completed, config, ended, spec
from trainables.divergence_words import divergence_clause
from trainables.measurements import DivergenceCause, DivergenceDiagnosis, NonFiniteIn
from trainables.outcomes import TrialOutcome
from trainables.specs import Precision


def replayed(cause: str, place: str | None = "forward", **given: Any) -> DivergenceDiagnosis:
    values: dict[str, Any] = {"replayed_from_step": 30, "gradient_norm_before": 12.345}
    if place is not None:
        values |= {"first_nonfinite_step": 37, "first_nonfinite_module": "layers.3", "nonfinite_in": NonFiniteIn(place)}
    return DivergenceDiagnosis(cause=DivergenceCause(cause), **(values | given))


def diverged(precision: str, found: DivergenceDiagnosis | None, lr: float = 1e-3) -> TrialOutcome:
    return ended("diverged", "loss became NaN at step 40", spec(config(precision, lr=lr)), divergence=found)


def found_in(*outcomes: TrialOutcome) -> list[Finding]:
    return [one for one in build_report(outcomes).findings if one.kind is FindingKind.DIVERGED]


def words(*outcomes: TrialOutcome) -> FindingWords:
    (one,) = found_in(*outcomes)
    return finding_words(one)


def test_a_divergence_of_fp16_alone_names_step_module_and_gradient_and_advises_bf16() -> None:
    found = words(diverged("fp16", replayed("precision", fp32_survives=True)))
    assert found.sentence == (
        "1 trial diverged for want of precision: replayed, the same steps stay finite in fp32, and "
        "fp16-b64-eager-lr0.001-w0 is first not finite in the output of layers.3 at step 37. "
        "At the last step that was finite the gradient's norm was 12.3."
    )
    assert found.advice == (
        "Use bf16, which has float32's range, or fp32; or keep that module in fp32 (torch.autocast with enabled=False "
        "around it)."
    )
    assert found.trials == "fp16-b64-eager-lr0.001-w0"


def test_bf16_is_not_advised_where_it_is_what_diverged() -> None:
    assert "bf16" not in words(diverged("bf16", replayed("precision"))).advice


def test_a_divergence_that_fp32_shares_advises_a_lower_lr_than_the_highest() -> None:
    outcomes = [diverged("fp32", replayed("training", gradient_norm_before=None), lr=lr) for lr in (0.1, 3.0)]
    found = words(*outcomes)
    assert found.sentence == (
        "2 trials diverged by the training itself, which fp32 does not survive: "
        "fp32-b64-eager-lr0.1-w0 is first not finite in the output of layers.3 at step 37."
    )
    assert "the highest among them is 3)" in found.advice
    assert "gradient_clip_norm" in found.advice


@pytest.mark.parametrize(
    ("found", "says", "advises"),
    [
        (replayed("loss_scale", "weights"), "the new weights layers.3 at step 37", "bf16"),
        (replayed("compile", None), "from step 30 on", "Leave compile off"),
        (replayed("not_reproduced", None), "not again when replayed", "run it again"),
        (replayed("undecided", "loss"), "first not finite in the loss at step 37", "Its note says why"),
        (
            replayed("data", "input", first_nonfinite_module=None, nonfinite_images=(5, 8)),
            "got it in the batch (training images 5, 8) at step 37",
            "leave out these images",
        ),
    ],
)
def test_every_cause_has_words_of_its_own(found: DivergenceDiagnosis, says: str, advises: str) -> None:
    said = words(diverged("fp16", found))
    assert says in said.sentence
    assert advises in said.advice


def test_there_is_one_finding_for_each_cause_and_none_without_a_replay() -> None:
    outcomes = [
        diverged("fp16", replayed("precision")),
        diverged("bf16", replayed("precision")),
        diverged("fp16", replayed("training"), lr=0.1),
        diverged("fp16", replayed("training", first_nonfinite_step=2), lr=0.2),
        diverged("fp32", None),
        completed(),
    ]
    findings = found_in(*outcomes)
    assert [(one.evidence["cause"], one.evidence["precisions"], one.evidence["count"]) for one in findings] == [
        ("precision", "bf16, fp16", 2),
        ("training", "fp16", 2),
    ]
    assert findings[1].evidence["step"] == 2


@pytest.mark.parametrize(
    ("found", "precision", "clause"),
    [
        (
            replayed("precision", fp32_survives=True),
            "fp16",
            "first not finite in the output of layers.3 at step 37 in fp16; the same steps stay finite in fp32",
        ),
        (
            replayed("training", "gradient", fp32_survives=False, fp32_nonfinite_step=38),
            "tf32",
            "first not finite in the gradient of layers.3 at step 37 in tf32; in fp32 at step 38",
        ),
        (
            replayed("training", fp32_survives=False, fp32_nonfinite_step=37, in_evaluation=True),
            "fp32",
            "first not finite in the output of layers.3 in the evaluation after step 37 in fp32",
        ),
        (replayed("not_reproduced", None), "fp32", "replayed from step 30, the same steps stay finite"),
        (
            replayed("compile", None),
            "fp32",
            "replayed from step 30, the same steps stay finite without torch.compile",
        ),
    ],
)
def test_a_replay_is_one_clause_of_the_status_reason(found: DivergenceDiagnosis, precision: str, clause: str) -> None:
    assert divergence_clause(found, Precision(precision)) == clause


def test_the_list_of_what_was_not_ranked_gives_the_reason_with_its_clause() -> None:
    found = replayed("precision", fp32_survives=True)
    reason = f"loss became NaN at step 40: {divergence_clause(found, Precision.FP16)}"
    outcome = ended("diverged", reason, spec(config("fp16")), divergence=found)
    (group,) = not_ranked_groups(build_report([outcome]))
    assert (group.status, group.reason) == ("diverged", reason)


def test_the_columns_hold_what_was_found_and_null_elsewhere() -> None:
    table = results_table(build_report([completed(), diverged("fp16", replayed("precision", fp32_survives=True))]))
    healthy, broken = ([row[name] for name in DIVERGENCE_COLUMNS] for row in table.to_pylist())
    assert healthy == [None] * len(DIVERGENCE_COLUMNS)
    assert broken == ["precision", 37, "forward", "layers.3", True, 12.345]
