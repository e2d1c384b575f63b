"""`python -m trainables.trial`: what it prints, and its exit codes."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.trial_building import toy_spec
from trainables.outcomes import TrialStatus, outcome_from_mapping
from trainables.spec_door import spec_to_yaml
from trainables.specs import TrialSpec
from trainables.trial import Progress, main
from trainables.trial_lines import progress_line

ROOT = Path(__file__).resolve().parents[1]


def spec_file(folder: Path, spec: TrialSpec) -> str:
    path = folder / "spec.yaml"
    path.write_text(spec_to_yaml(spec))
    return str(path)


def test_its_last_line_is_the_outcome_as_one_json_document(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, [spec_file(tmp_path, toy_spec()), "--device", "cpu", "--cpu-threads", "1"])
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    outcome = outcome_from_mapping(json.loads(lines[-1]))
    assert outcome.status is TrialStatus.COMPLETED
    assert outcome.placement.cpu_threads == 1
    assert lines[1].startswith("epoch 1 of 2, step 6, ")
    assert "completed" in lines
    assert any(line.endswith(" images/s by compute alone") for line in lines)
    assert any(line.endswith(" images/s by the loader alone") for line in lines)


def test_a_trial_that_does_not_complete_exits_with_1_and_says_why(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, [spec_file(tmp_path, toy_spec("nan_from_step")), "--device", "cpu"])
    assert result.exit_code == 1
    assert "\ndiverged: loss became NaN at step 5: first not finite in" in result.stdout
    assert json.loads(result.stdout.splitlines()[-1])["status"] == "diverged"


@pytest.mark.parametrize("text", ["", "model: [", "model: digits_cnn\nknobs: {precision: fp99}\n"])
def test_wrong_input_exits_with_2_and_runs_nothing(tmp_path: Path, text: str) -> None:
    path = tmp_path / "spec.yaml"
    path.write_text(text)
    result = CliRunner().invoke(main, [str(path)])
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "spec.yaml" in result.stderr


def test_a_file_that_is_not_there_exits_with_2() -> None:
    assert CliRunner().invoke(main, ["nowhere/spec.yaml"]).exit_code == 2


def test_a_device_that_is_not_there_exits_with_2(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, [spec_file(tmp_path, toy_spec()), "--device", "tpu:3"])
    assert result.exit_code == 2
    assert "device tpu:3: there is no such device here" in result.stderr


def test_a_trial_with_checkpoints_goes_on_from_them(tmp_path: Path) -> None:
    arguments = [spec_file(tmp_path, toy_spec()), "--device", "cpu", "--checkpoints", str(tmp_path / "kept")]
    CliRunner().invoke(main, arguments)
    again = json.loads(CliRunner().invoke(main, arguments).stdout.splitlines()[-1])
    assert (again["segment_start"], again["epochs_completed"]) == (2, 2)


@pytest.mark.slow
def test_users_entries_are_found_where_the_command_is_given(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("from tests.toy_entries import mlp as build, stripes as images\n")
    text = spec_to_yaml(toy_spec()).replace("tests.toy_entries:mlp", "mine:build")
    (tmp_path / "spec.yaml").write_text(text.replace("tests.toy_entries:stripes", "mine:images"))
    ended = subprocess.run(
        [sys.executable, "-m", "trainables.trial", "spec.yaml", "--device", "cpu"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout.splitlines()[-1])["status"] == "completed"


def test_a_line_of_progress_leaves_out_what_is_not_known() -> None:
    known = Progress(epoch=1.5, epochs=4, step=150, images_per_second=12345.6, accuracy=0.5, train_loss=1.25)
    assert progress_line(known) == ("epoch 1.5 of 4, step 150, 12,346 images/s, accuracy 50.00%, training loss 1.2500")
    unknown = Progress(epoch=0.1, epochs=4, step=10, images_per_second=None, accuracy=None, train_loss=None)
    assert progress_line(unknown) == "epoch 0.1 of 4, step 10"
