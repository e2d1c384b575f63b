"""The command `python -m orchestrator.doctor`."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from orchestrator import doctor


def run_doctor(*arguments: str) -> Result:
    return CliRunner().invoke(doctor.main, list(arguments))


def document(result: Result) -> dict[str, Any]:
    return json.loads(result.output.splitlines()[-1])


def test_this_machine_is_described_and_nothing_is_left_behind(tmp_path: Path) -> None:
    result = run_doctor("--storage", str(tmp_path / "runs"), "--json")
    found = document(result)
    (node,) = found["nodes"]
    assert node["facts"]["storage"]["location"] == str(tmp_path / "runs")
    assert found["exit_code"] == result.exit_code
    assert result.exit_code == int(any(problem["stops"] for problem in found["problems"]))
    assert "storage" in result.output
    assert list(tmp_path.iterdir()) == []


def test_what_stops_a_sweep_is_exit_code_one(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = run_doctor("--storage", str(tmp_path / "file" / "runs"), "--json")
    assert result.exit_code == 1
    kinds = {problem["kind"] for problem in document(result)["problems"] if problem["stops"]}
    assert "storage_unwritable" in kinds
    assert "stops a sweep (storage_unwritable)" in result.output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--storage", "nowhere://x/y"], "storage nowhere://x/y"),
        (["--address", "127.0.0.1:1"], "--address 127.0.0.1:1"),
    ],
)
def test_wrong_input_is_exit_code_two(arguments: list[str], words: str) -> None:
    result = run_doctor(*arguments)
    assert result.exit_code == 2
    assert words in result.output


@pytest.mark.ray
def test_every_node_of_a_cluster_is_asked(tmp_path: Path) -> None:
    result = run_doctor("--address", "local", "--storage", str(tmp_path / "runs"), "--json")
    (node,) = document(result)["nodes"]
    assert node["fault"] is None
    assert node["facts"]["cpus"] >= 1
    assert node["facts"]["storage"]["shared"] is True
    assert node["declared_gpus"] == len(node["facts"]["torch"]["gpus"])
    assert list(tmp_path.iterdir()) == []
