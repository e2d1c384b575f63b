"""ARCHITECTURE.md's module tables, held to the code: who may import what, and what no module may do."""

import ast
import subprocess
import sys

import pytest

from tests.import_rules import (
    HEAVY,
    PACKAGES,
    ROOT,
    heavy,
    import_faults,
    parse,
    read_sources,
    read_tables,
    unused_permissions,
    work_at_import,
)

LONGEST_MODULE_LINES = 300
SOURCES = read_sources()
DOCUMENT = (ROOT / "ARCHITECTURE.md").read_text()
TABLES = read_tables(DOCUMENT)
every_module = pytest.mark.parametrize("name", list(SOURCES))


def test_imports_and_modules_are_those_of_the_architecture() -> None:
    found = import_faults(TABLES, SOURCES)
    assert not found, "\n".join(found)


def test_no_permission_in_the_architecture_is_left_unused() -> None:
    found = unused_permissions(DOCUMENT, SOURCES)
    assert not found, "\n".join(found)


def test_the_modules_without_torch_and_ray_really_load_neither() -> None:
    """In a fresh interpreter: libraries could bring them in too."""
    light = [name for name in SOURCES if not TABLES.get(name, frozenset()) & HEAVY and not heavy(name, SOURCES)]
    assert len(light) > len(PACKAGES)
    program = f"import sys, {', '.join(light)}; print(sorted(set(sys.modules) & {{'torch', 'ray'}}))"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[]\n", "")


@every_module
def test_a_module_does_nothing_when_it_is_imported(name: str) -> None:
    assert work_at_import(SOURCES[name].tree) == []


@every_module
def test_a_module_stays_short(name: str) -> None:
    assert SOURCES[name].lines <= LONGEST_MODULE_LINES


@every_module
def test_a_module_does_not_assert(name: str) -> None:
    """Python's -O takes assertions away, and a person's mistake is an InputError."""
    assert [node.lineno for node in ast.walk(SOURCES[name].tree) if isinstance(node, ast.Assert)] == []


# The rules above, shown to be able to say no.

EXAMPLE = """
`trainables/` is all that runs on the device.

| module | subject | may import |
|---|---|---|
| `specs` | pure | – |
| `loop`, `clock` | (and `more` in words) | torch, PyYAML |

`orchestrator/` decides.

| module | subject | may import |
|---|---|---|
| `runner` | the sweep | ray |
| `plan` | pure | – |
"""


def faults(**texts: str) -> list[str]:
    sources = {name.replace("__", "."): parse(text) for name, text in texts.items()}
    return [fault for fault in import_faults(read_tables(EXAMPLE), sources) if "not in the code" not in fault]


def test_tables_are_read_with_several_modules_in_a_row() -> None:
    assert read_tables(EXAMPLE) == {
        "trainables.specs": frozenset(),
        "trainables.loop": frozenset({"torch", "PyYAML"}),
        "trainables.clock": frozenset({"torch", "PyYAML"}),
        "orchestrator.runner": frozenset({"ray"}),
        "orchestrator.plan": frozenset(),
    }


@pytest.mark.parametrize(
    "text",
    ["import torch", "from torchvision import models", "def f():\n import torch", "try:\n import torch\nexcept E: ..."],
)
def test_torch_in_a_pure_module_is_found_at_any_depth(text: str) -> None:
    assert faults(trainables__specs=text) == ["trainables.specs imports torch"]


def test_torch_for_type_checkers_only_is_no_import() -> None:
    assert faults(trainables__specs="from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n import torch") == []


def test_torch_through_another_module_is_found() -> None:
    assert faults(
        trainables__loop="import torch",
        trainables__specs="from trainables import loop",
        orchestrator__plan="from trainables.specs import Spec",
        orchestrator__runner="import ray\ndef f():\n from trainables import loop",
    ) == [
        "trainables.specs imports torch through another module",
        "orchestrator.plan imports torch through another module",
    ]


def test_a_library_that_the_table_does_not_name_is_found() -> None:
    assert faults(trainables__loop="import yaml, torch, json\nimport requests") == ["trainables.loop imports requests"]


def test_numpy_and_pillow_go_with_torch_and_not_without_it() -> None:
    assert faults(trainables__loop="import torch, yaml, numpy", trainables__clock="from PIL import Image") == []
    assert faults(trainables__specs="import numpy as np") == ["trainables.specs imports numpy"]


def test_a_trainable_that_reaches_for_the_orchestrator_is_found() -> None:
    assert faults(trainables__specs="def f():\n from orchestrator import plan", orchestrator__plan="") == [
        "trainables.specs imports orchestrator.plan"
    ]


def test_modules_missing_on_either_side_are_found() -> None:
    assert import_faults({"trainables.a": frozenset()}, {"trainables.b": parse("")}) == [
        "trainables.b is in no table of ARCHITECTURE.md",
        "trainables.a is in ARCHITECTURE.md and not in the code",
    ]


def test_a_permission_that_no_module_of_its_row_uses_is_found() -> None:
    sources = {
        "trainables.loop": parse("import torch"),
        "trainables.clock": parse(""),
        "orchestrator.runner": parse(""),
    }
    assert unused_permissions(EXAMPLE, sources) == [
        "trainables.loop, trainables.clock may import PyYAML and does not",
        "orchestrator.runner may import ray and does not",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "print('hello')",
        "import os\nHOME = os.getenv('HOME')",
        "import os\nHOME = os.environ['HOME']",
        "import torch\nDEVICE = 'cuda' if torch.cuda.is_available() else 'cpu'",
        "class A:\n  started = time.time()",
        "def f(x=open('y')): ...",
        "for i in range(3):\n  pass",
    ],
)
def test_work_at_import_is_found(text: str) -> None:
    assert work_at_import(ast.parse(text))


@pytest.mark.parametrize(
    "text",
    [
        '"""Words."""\nNAMES = tuple(sorted({"a"}))',
        "import os\ndef f():\n  return os.environ",
        "if __name__ == '__main__':\n  print('main')",
        "LOG = logging.getLogger(__name__)",
    ],
)
def test_definitions_are_no_work_at_import(text: str) -> None:
    assert work_at_import(ast.parse(text)) == []
