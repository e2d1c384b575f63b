"""The JSON document of a report."""

import json

import pytest

from orchestrator.answer import build_report
from orchestrator.result_document import result_document
from tests import report_example
from tests.built_outcomes import completed, config, ended, spec


def test_the_document_holds_what_the_report_shows() -> None:
    document = json.loads(json.dumps(result_document(report_example.report()), allow_nan=False))
    winner = document["winner"]
    assert (winner["label"], winner["rank"], winner["tied_with"]) == ("bf16-b64-eager-lr0.001-w0", 1, 1)
    assert winner["config"]["precision"] == "bf16"
    assert winner["speedup"]["value"] == pytest.approx(1.5)
    assert winner["is_recommended"]
    (ranking,) = document["rankings"]
    assert [entry["rank"] for entry in ranking["configurations"]] == [1, 1, 3, 4, 5]
    assert [entry["baseline"] for entry in ranking["configurations"]] == [
        "matched",
        "not_run",
        "is_baseline",
        "matched",
        "is_baseline",
    ]
    assert document["statuses"] == {"completed": 5, "out_of_memory": 1, "failed": 1}
    assert [entry["status"] for entry in document["not_ranked"]] == ["out_of_memory", "failed"]
    assert document["not_ranked"][1]["reason"] == report_example.HOSTILE
    assert len(document["not_run"]) == 4
    assert document["findings"][0]["kind"] == "learned_nothing"
    assert document["answer"][0].startswith("bf16, batch 64, not compiled")


def test_the_document_says_what_each_knob_does_and_on_what_that_depends() -> None:
    outcomes = [
        completed(spec(config(batch_size=size, compile=mode)), rate=rate)
        for size, gain in ((64, 0.5), (128, 2.0), (256, 3.0))
        for mode, rate in (("off", 1000.0), ("default", 1000.0 * gain))
    ]
    document = json.loads(json.dumps(result_document(build_report(outcomes)), allow_nan=False))
    effect = document["knob_effects"][-1]
    assert (effect["knob"], effect["before"], effect["after"], effect["pairs"]) == ("compile", "off", "default", 3)
    assert effect["speedup"]["value"] == pytest.approx(3 ** (1 / 3))
    assert (effect["accuracy_change"], effect["verdict"]) == (0.0, "no_clear_difference")
    (found,) = document["interactions"]
    assert (found["knob"], found["by"], found["contrasts"]) == ("compile", "batch_size", 1)
    assert [level["value"] for level in found["levels"]] == [64, 256]
    assert found["contrast"]["value"] == pytest.approx(6.0)
    assert found["threshold"] == {"value": 128, "upwards": True}


def test_without_a_winner_it_is_null_and_the_answer_says_why() -> None:
    document = result_document(build_report([ended("failed", "bad label")]))
    assert (document["winner"], document["rankings"]) == (None, [])
    assert document["answer"] == ["No configuration can be ranked: of 1 trial none qualifies (1 failed)."]
