"""The sweep command before anything is started: plans and refusals, with neither Ray nor torch."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

WATCHED = """
import sys
from orchestrator.sweep import main
try:
    main(sys.argv[1:])
finally:
    print("imported:", sorted({"torch", "ray"} & set(sys.modules)), file=sys.stderr)
"""


def sweep(*arguments: str, expect: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-c", WATCHED, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == expect, done.stderr
    assert "imported: []" in done.stderr
    return done


def test_a_plan_shows_every_trial_and_starts_nothing(tmp_path: Path) -> None:
    done = sweep("--plan", "--storage", str(tmp_path / "runs"), "--repeats", "2")
    assert "10 configurations × 2 repeats (38 excluded by constraints), 20 trials" in done.stdout
    assert "no earlier run in the storage tells their cost" in done.stdout
    assert done.stdout.count("1 GPU and 3 CPU on one node; with no GPU all its CPUs") == 4
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nothing-here",), "there is no such file or ready space"),
        (("--set", "knobs.lr=fast"), "--set knobs.lr"),
        (("--gpus-per-trial", "2"), "--gpus-per-trial 2: a trial uses one device"),
        (("--exclusive", "--gpus-per-trial", "0.5"), "--exclusive: a trial that is alone on its node shares no card"),
        (("--isolation", "none"), "'none' is not one of"),
        (("--extend",), "name it with --resume RUN"),
        (("--resume", "nowhere"), "no run here"),
        (("--search", "grid", "--set", "knobs.lr={uniform: [0.1, 0.2]}"), "--search random"),
        (("--repeats", "0"), "a whole number from 1, or auto"),
        (("--repeats", "often"), "a whole number from 1, or auto"),
        (("--set", "epochs=0"), "epochs"),
        (("--storage", "nothing://x"), "nothing://x"),
        (("--name", "../up"), "--name '../up'"),
        (("--time-budget", "nan"), "--time-budget nan: give a finite number"),
        (("--set", "model=tests.toy_entries:mlpp"), "did you mean mlp?"),
    ],
)
def test_wrong_input_is_refused_before_anything_starts(arguments: tuple[str, ...], message: str) -> None:
    done = sweep(*arguments, "--plan", expect=2)
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_all_that_is_wrong_with_the_options_is_said_at_once() -> None:
    done = sweep("--gpus-per-trial", "2", "--extend", expect=2)
    assert done.stderr.count("error: ") == 2
