"""The documents, held to the code: links, commands and their options, statuses, exit codes, snippets."""

import importlib.util
import json
import re
import subprocess
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import click
import pytest
import yaml

from orchestrator.comparison import Verdict
from orchestrator.findings import FindingKind
from orchestrator.interruption import INTERRUPTED_EXIT_CODE
from orchestrator.pair_columns import PAIR_SCHEMA
from orchestrator.problems import STOPPING, ProblemKind
from orchestrator.result_columns import NOT_MEASURED_YET, result_schema
from orchestrator.sweep import WRONG_INPUT_EXIT_CODE
from tests.document_reading import (
    commands,
    documents,
    fenced_blocks,
    heading_anchors,
    is_placeholder,
    links,
    machine_paths,
)
from trainables.outcomes import TrialStatus

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = documents(ROOT)
FOREIGN_MODULES = ("mypy", "pip", "pytest", "ruff", "venv")

every_document = pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))


def for_users() -> str:
    pages = [path for path in DOCUMENTS if path == ROOT / "README.md" or path.parent == ROOT / "docs"]
    return "\n".join(path.read_text() for path in pages)


@every_document
def test_every_relative_link_leads_somewhere(path: Path) -> None:
    dead = []
    for link in links(path.read_text()):
        target, _, anchor = link.partition("#")
        file = (path.parent / target).resolve() if target else path
        if not file.exists() or (anchor and anchor not in heading_anchors(file.read_text())):
            dead.append(link)
    assert dead == []


@every_document
def test_no_document_names_a_path_of_one_machine(path: Path) -> None:
    assert machine_paths(path.read_text()) == []


@every_document
def test_yaml_and_json_in_documents_can_be_read(path: Path) -> None:
    for language, text in fenced_blocks(path.read_text()):
        if language in ("yaml", "json"):
            assert (yaml.safe_load if language == "yaml" else json.loads)(text) is not None


def documented_commands() -> Iterator[tuple[Path, str, tuple[str, ...]]]:
    for path in DOCUMENTS:
        for module, arguments in commands(path.read_text()):
            yield path, module, arguments


COMMANDS = sorted(set(documented_commands()))


@pytest.mark.parametrize(
    ("path", "module", "arguments"), COMMANDS, ids=[f"{path.name}-{module}" for path, module, _ in COMMANDS]
)
def test_every_command_in_the_documents_is_one_that_the_code_takes(
    path: Path, module: str, arguments: tuple[str, ...]
) -> None:
    if module in FOREIGN_MODULES:
        assert importlib.util.find_spec(module) is not None
        return
    assert module.partition(".")[0] in ("orchestrator", "trainables")
    command = import_module(module).main
    assert isinstance(command, click.Command)
    known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    known |= set(command.get_help_option_names(click.Context(command)))
    asked = {argument.partition("=")[0] for argument in arguments if re.match(r"--?[a-z]", argument)}
    assert asked - known == set()
    if arguments and not any(is_placeholder(argument) for argument in arguments):  # without any, it is only named
        command.make_context(module, [argument for argument in arguments if argument not in ("-h", "--help")])


def test_documents_show_the_main_commands() -> None:
    assert {"orchestrator.sweep", "orchestrator.report", "orchestrator.doctor", "trainables.trial", "pytest"} <= {
        name for _, name, _ in COMMANDS
    }


@pytest.mark.parametrize(("path", "module", "arguments"), [entry for entry in COMMANDS if entry[1].endswith(".sweep")])
def test_every_search_space_in_the_documents_exists(path: Path, module: str, arguments: tuple[str, ...]) -> None:
    context = import_module(module).main.make_context(module, list(arguments), resilient_parsing=True)
    space = context.params["space"]
    ready = {file.stem for file in (ROOT / "search_spaces").glob("*.yaml")}
    if space is None or is_placeholder(space) or space in ready:
        return
    assert space.endswith(".yaml")
    folder = (path.parent / space).parent
    assert space == Path(space).name or not folder.is_dir() or (path.parent / space).is_file()  # else the reader's own


@pytest.mark.parametrize("status", list(TrialStatus))
def test_every_status_is_explained_to_users(status: TrialStatus) -> None:
    assert f"`{status.value}`" in for_users()


@pytest.mark.parametrize("code", [0, 1, WRONG_INPUT_EXIT_CODE, INTERRUPTED_EXIT_CODE])
def test_every_exit_code_is_explained_to_users(code: int) -> None:
    """In the paragraph, list or table that follows the words "exit code"."""
    explained = re.findall(r"(?is)exit codes?\b.*?(?=\n#|\Z)", for_users())
    assert any(re.search(rf"(?<![\d.]){code}(?![\d.]*\d)", part) for part in explained)


def columns_under(heading: str) -> list[str]:
    """Names in the first column of the table under a heading of docs/results.md."""
    section = (ROOT / "docs" / "results.md").read_text().partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    cells = re.findall(r"^\| (`.+?`) \|", section, re.MULTILINE)
    return [name for cell in cells for name in re.findall(r"`([a-z0-9_]+)`", cell)]


def test_every_column_of_the_results_is_explained_in_their_order() -> None:
    assert columns_under("Columns of results.parquet") == result_schema().names


def test_every_column_of_the_pairs_is_explained_in_their_order() -> None:
    assert columns_under("Columns of pairs.parquet") == PAIR_SCHEMA.names


@pytest.mark.parametrize("verdict", list(Verdict))
def test_every_verdict_is_explained(verdict: Verdict) -> None:
    assert f"`{verdict.value}`" in for_users()


def test_the_columns_said_to_be_unmeasured_are_those() -> None:
    lines = (ROOT / "docs" / "results.md").read_text().splitlines()
    unmeasured = [line for line in lines if "not measured yet" in line or "null: evaluation" in line]
    assert {name for line in unmeasured for name in re.findall(r"`([a-z0-9_]+)`", line)} == set(NOT_MEASURED_YET)


def test_the_table_of_statuses_is_complete() -> None:
    assert columns_under("Statuses") == [status.value for status in TrialStatus]


def test_the_continuous_check_runs_the_test_command_of_the_readme() -> None:
    shown = subprocess.run([ROOT / ".ci" / "run", "--show"], capture_output=True, text=True, check=False)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout in (ROOT / "README.md").read_text()
    assert "pip install -e '.[test]'" in shown.stdout


def test_contributors_find_every_marker() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    table = re.findall(r"^\| `([a-z]+)` \|", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE)
    assert sorted(table) == sorted(marker.partition(":")[0] for marker in settings["markers"])


# The reading above, shown to find what it is to find.

EXAMPLE = """# A title, with `code` in it

See [one](other.md#part), [two](https://example.com), [three](#a-title),
and `python -m orchestrator.report RUN --html F`.

```bash
python -m venv v && . v/bin/activate && python -m pytest -m "not ray"   # words
ray exec cluster.yaml 'python -m orchestrator.sweep quick --set knobs.lr=[0.1,0.2]'
RAY_AUTH_MODE=token python -m orchestrator.sweep \\
    --plan
```

```text
[no](link.md) python -m nothing
```
"""


def test_commands_are_found_in_blocks_and_in_sentences() -> None:
    assert list(commands(EXAMPLE)) == [
        ("venv", ("v",)),
        ("pytest", ("-m", "not ray")),
        ("orchestrator.sweep", ("quick", "--set", "knobs.lr=[0.1,0.2]")),
        ("orchestrator.sweep", ("--plan",)),
        ("orchestrator.report", ("RUN", "--html", "F")),
    ]


def test_relative_links_are_found_outside_of_blocks() -> None:
    assert list(links(EXAMPLE)) == ["other.md#part", "#a-title"]


def test_headings_have_the_anchors_that_github_gives_them() -> None:
    assert heading_anchors(EXAMPLE) == {"a-title-with-code-in-it"}


@pytest.mark.parametrize("text", ["in /root/x", "`/home/jo/data`", "(/Users/jo)", "/mnt/c", "C:\\Users\\jo"])
def test_a_path_of_one_machine_is_found(text: str) -> None:
    assert machine_paths(text)


@pytest.mark.parametrize("text", ["/home/ray/runs", "~/runs", "/dev/null", "/data/birds", "and/or"])
def test_a_path_that_every_machine_has_is_none(text: str) -> None:
    assert machine_paths(text) == []


@pytest.mark.parametrize(("word", "verdict"), [("RUN", True), ("SPACE.yaml", True), ("…", True), ("[SPACE]", True)])
def test_placeholders_are_told_from_values(word: str, verdict: bool) -> None:
    assert is_placeholder(word) is verdict
    assert is_placeholder("my_spaces/birds.yaml")
    assert not is_placeholder("quick") and not is_placeholder("--plan") and not is_placeholder("knobs.lr=[0.1]")  # noqa: PT018


@pytest.mark.parametrize("kind", FindingKind)
def test_every_finding_is_explained(kind: FindingKind) -> None:
    assert f"| `{kind.value}` |" in (ROOT / "docs" / "measuring.md").read_text()


@pytest.mark.parametrize("kind", ProblemKind)
def test_every_problem_is_explained_with_whether_it_stops_a_sweep(kind: ProblemKind) -> None:
    (row,) = re.findall(
        rf"^\| `{kind.value}` \|.*\| (yes|no) \|$", (ROOT / "docs" / "doctor.md").read_text(), re.MULTILINE
    )
    assert row == ("yes" if kind in STOPPING else "no")
