"""The command that ranks and reports stored runs again."""

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from orchestrator.ledger import Ledger
from orchestrator.report import main
from orchestrator.search_space import parse_space
from tests.built_outcomes import completed, ended
from trainables.outcomes import DeviceFacts, TrialOutcome
from trainables.specs import Precision, TrialSpec

SPACE = """
model: digits_cnn
dataset: digits
epochs: 20
knobs: {precision: [fp32, bf16], batch_size: 64, compile: false, lr: [1e-3, 3e-3], num_workers: 0}
"""
SPECS = [parse_space(SPACE, name="space").spec(config) for config in parse_space(SPACE, name="space").grid().configs]


def outcome_of(asked: TrialSpec) -> TrialOutcome:
    return completed(asked, rate=2000.0 if asked.config.precision is Precision.BF16 else 1000.0)


def stored(folder: Path, name: str, outcomes: Iterable[TrialOutcome], space: str = SPACE) -> str:
    """A run's folder, as a sweep leaves it."""
    ledger = Ledger.create(str(folder), name)
    ledger.write_space(parse_space(space, name="space").to_yaml())
    for outcome in outcomes:
        ledger.record(outcome)
    return ledger.storage.location


def report(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


def test_a_stored_run_is_reported_with_what_was_not_run(tmp_path: Path) -> None:
    done = report(stored(tmp_path, "a", map(outcome_of, SPECS[:3])))
    assert done.exit_code == 0, done.output
    assert "bf16, batch 64, not compiled, lr 0.001, no workers: 2.00x the fp32 baseline [1.88-2.12]" in done.output
    assert f"1 planned trial not run: {SPECS[3].label}" in done.output
    assert "report.html" not in done.output


def test_speed_ups_are_over_the_baseline_that_is_asked_for(tmp_path: Path) -> None:
    run = stored(tmp_path, "a", map(outcome_of, SPECS))
    table, answer = (
        report(run, "--baseline", "lr=1e-3").output.splitlines()[1:3],
        report(run, "--baseline", "none").output,
    )
    assert "x0.001" in table[0]
    assert "xfp32" in report(run).output
    assert "baseline" not in answer
    assert "xfp32" not in answer
    wrong = report(run, "--baseline", "precision=bf61")
    assert wrong.exit_code == 2
    assert "did you mean 'bf16'?" in wrong.output


def test_without_a_word_the_baseline_is_the_one_that_the_run_asked_for(tmp_path: Path) -> None:
    run = stored(tmp_path, "a", map(outcome_of, SPECS))
    Ledger.open(run).write_environment({"asked": {"baseline": "lr=0.001"}})
    assert "x0.001" in report(run).output
    assert "xfp32" in report(run, "--baseline", "auto").output


def test_files_are_named_where_the_run_has_them(tmp_path: Path) -> None:
    run = stored(tmp_path, "a", map(outcome_of, SPECS))
    (Path(run) / "results.parquet").write_bytes(b"")
    assert f"{run}: report.html, leaderboard.md" in report(run).output


def test_several_runs_are_ranked_together_and_answer_each_others_gaps(tmp_path: Path) -> None:
    first = stored(tmp_path, "a", map(outcome_of, SPECS[:2]))
    second = stored(tmp_path, "b", map(outcome_of, SPECS[1:]))
    done = report(first, second, first)
    assert "4 trials: 4 completed; 4 configurations ranked" in done.output
    assert "not run" not in done.output


def test_runs_that_cannot_be_compared_are_ranked_apart(tmp_path: Path) -> None:
    here = stored(tmp_path, "a", [completed(SPECS[0])])
    there = stored(tmp_path, "b", [completed(SPECS[0], device=DeviceFacts(device="NVIDIA H200"))])
    assert report(here, there).output.count("the fp32 baseline itself") == 2


def test_the_last_line_with_json_is_one_document(tmp_path: Path) -> None:
    run = stored(tmp_path, "a", map(outcome_of, SPECS[:3]))
    document = json.loads(report(run, "--json", "--rank-by", "images_per_second").output.splitlines()[-1])
    assert (document["runs"], document["exit_code"], document["rank_by"]) == ([run], 0, "images_per_second")
    assert document["winner"]["config"]["precision"] == "bf16"
    assert [entry["label"] for entry in document["not_run"]] == [SPECS[3].label]


def test_the_tolerance_decides_who_is_accurate_enough(tmp_path: Path) -> None:
    outcomes = [completed(SPECS[0], accuracy=0.98), completed(SPECS[2], rate=2000.0, accuracy=0.97)]
    run = stored(tmp_path, "a", outcomes)
    for tolerance, winner in (("0.005", "fp32"), ("0.02", "bf16")):
        document = json.loads(report(run, "--json", "--accuracy-tolerance", tolerance).output.splitlines()[-1])
        assert document["winner"]["config"]["precision"] == winner


def test_the_html_file_is_written_where_it_was_asked_for(tmp_path: Path) -> None:
    run = stored(tmp_path, "a", map(outcome_of, SPECS))
    assert report(run, "--html", str(tmp_path / "out.html")).exit_code == 0
    assert (tmp_path / "out.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert list(Path(run).glob("*.html")) == []


def test_where_no_trial_completed_the_exit_code_is_1_and_each_reason_is_shown(tmp_path: Path) -> None:
    done = report(stored(tmp_path, "a", [ended("failed", "ValueError: bad label", SPECS[0])]))
    assert done.exit_code == 1
    assert f"failed: {SPECS[0].label}: ValueError: bad label" in done.output
    assert "Traceback" not in done.output


def test_a_run_that_recorded_nothing_is_reported_as_that(tmp_path: Path) -> None:
    done = report(stored(tmp_path, "a", []))
    assert done.exit_code == 1
    assert "No trial has finished" in done.output
    assert "4 planned trials not run" in done.output


def test_every_wrong_folder_is_named_at_once(tmp_path: Path) -> None:
    done = report(str(tmp_path / "one"), stored(tmp_path, "a", []), str(tmp_path / "two"))
    assert done.exit_code == 2
    assert done.output.count("error: ") == 2
    assert "no run here (space.yaml is missing)" in done.output


@pytest.mark.parametrize(
    "arguments", [[], ["--rank-by", "speed"], ["--accuracy-tolerance", "2"], ["--html", "no/such/folder/x.html"]]
)
def test_wrong_options_end_with_exit_code_2(arguments: list[str], tmp_path: Path) -> None:
    run = [] if not arguments else [stored(tmp_path, "a", map(outcome_of, SPECS))]
    done = report(*run, *arguments)
    assert done.exit_code == 2
    assert done.exception is None or isinstance(done.exception, SystemExit)


def test_a_space_that_cannot_be_planned_again_hides_what_was_not_run_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run = stored(tmp_path, "a", map(outcome_of, SPECS[:1]))
    (Path(run) / "space.yaml").write_text("knobs: {precision: [fp99]}\n")
    done = report(run)
    assert done.exit_code == 0
    assert "1 trial: 1 completed" in done.output
    assert "what was not run is not known" in caplog.text


def test_reporting_needs_neither_torch_nor_ray(tmp_path: Path) -> None:
    run = stored(tmp_path, "a", map(outcome_of, SPECS))
    program = (
        "import sys\n"
        "from orchestrator.report import main\n"
        f"main([{run!r}, '--json', '--html', {str(tmp_path / 'x.html')!r}], standalone_mode=False)\n"
    )
    check = "import atexit, sys; atexit.register(lambda: print(sorted({'torch', 'ray'} & set(sys.modules))))\n"
    root = Path(__file__).parents[1]
    command = [sys.executable, "-c", check + program]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=root)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[]"
