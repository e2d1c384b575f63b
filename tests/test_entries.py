"""User code by name: loading and fingerprints."""

import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainables.entries import code_fingerprint, data_fingerprint, is_entry, load_entry, refuse_missing
from trainables.errors import InputError


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder; what a test imports is forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place != ""])
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    return tmp_path


def package(folder: Path, name: str, **modules: str) -> Path:
    (folder / name).mkdir()
    for module, source in {"__init__": "", **modules}.items():
        (folder / name / f"{module}.py").write_text(source)
    return folder / name


@pytest.mark.parametrize("name", ["my_package.models:build", "models:build", "a.b:Class.method", "broken:", ":x"])
def test_a_name_with_a_colon_is_an_entry(name: str) -> None:
    assert is_entry(name)


@pytest.mark.parametrize("name", ["resnet18", "timm:resnet18", "my.model"])
def test_built_in_and_timm_names_are_no_entries(name: str) -> None:
    assert not is_entry(name)


def test_an_entry_in_the_working_folder_is_loaded_though_the_folder_is_not_on_the_path(folder: Path) -> None:
    package(folder, "birds", models="def build():\n    return 'built'\n\nclass Box:\n    make = staticmethod(build)\n")
    assert load_entry("birds.models:build")() == "built"
    assert load_entry("birds.models:Box.make")() == "built"


def test_a_missing_module_is_named_with_the_place_and_the_remedy(folder: Path) -> None:
    with pytest.raises(InputError) as error:
        load_entry("nowhere.models:build")
    message = str(error.value)
    assert "no module nowhere" in message
    assert str(folder) in message
    assert "PYTHONPATH" in message


def test_a_missing_submodule_is_not_taken_for_a_missing_package(folder: Path) -> None:
    package(folder, "cats")
    with pytest.raises(InputError, match=r"no module cats\.models"):
        load_entry("cats.models:build")


def test_a_module_that_the_users_module_needs_is_named_as_not_installed(folder: Path) -> None:
    package(folder, "dogs", models="import not_installed_anywhere\n")
    with pytest.raises(InputError, match=r"importing dogs\.models needs the module not_installed_anywhere"):
        load_entry("dogs.models:build")


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("raise KeyError('weights')", "KeyError: 'weights'"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("def broken(:\n", "SyntaxError"),
    ],
)
def test_an_exception_at_import_is_reported_with_its_own_text(folder: Path, source: str, text: str) -> None:
    package(folder, "eels", models=source)
    with pytest.raises(InputError, match=r"importing eels\.models raised") as error:
        load_entry("eels.models:build")
    assert text in str(error.value)


def test_a_missing_attribute_is_answered_with_the_nearest_one(folder: Path) -> None:
    package(folder, "frogs", models="def build():\n    pass\n")
    with pytest.raises(InputError, match="did you mean build") as error:
        load_entry("frogs.models:biuld")
    assert str(folder / "frogs" / "models.py") in str(error.value)


def test_an_attribute_that_cannot_be_called_is_refused(folder: Path) -> None:
    package(folder, "goats", models="width = 3\n")
    with pytest.raises(InputError, match=r"width .* is a int, which cannot be called"):
        load_entry("goats.models:width")


@pytest.mark.parametrize("name", ["models:", ":build", "my package:build", "a:b:c", "a-b:c", "a..b:c"])
def test_a_misspelt_entry_is_answered_with_the_right_form(name: str) -> None:
    with pytest.raises(InputError, match=r"package\.module:callable"):
        load_entry(name)


def test_no_entry_has_no_code_fingerprint() -> None:
    assert code_fingerprint(["fashion_cnn", "digits"]) is None


def test_the_code_fingerprint_covers_every_source_file_of_the_package_and_nothing_else(folder: Path) -> None:
    path = package(folder, "hens", models="x = 1\n", layers="y = 1\n")
    before = code_fingerprint(["hens.models:build"])
    (path / "__pycache__").mkdir()
    (path / "__pycache__" / "models.py").write_text("no source")
    (path / "notes.txt").write_text("no source")
    assert code_fingerprint(["hens.models:build"]) == before
    (path / "layers.py").write_text("y = 2\n")
    changed = code_fingerprint(["hens.models:build"])
    assert changed != before
    (path / "layers.py").rename(path / "blocks.py")
    assert code_fingerprint(["hens.models:build"]) not in (before, changed)


def test_the_code_fingerprint_imports_no_user_code(folder: Path) -> None:
    package(folder, "ibises", __init__="raise RuntimeError('imported')", models="raise RuntimeError('imported')")
    assert code_fingerprint(["ibises.models:build"]) is not None
    assert "ibises" not in sys.modules


def test_a_single_module_and_a_folder_without_init_have_fingerprints_too(folder: Path) -> None:
    (folder / "lone_module.py").write_text("x = 1\n")
    (folder / "loose").mkdir()
    (folder / "loose" / "models.py").write_text("x = 1\n")
    lone, loose = code_fingerprint(["lone_module:build"]), code_fingerprint(["loose.models:build"])
    (folder / "lone_module.py").write_text("x = 2\n")
    (folder / "loose" / "models.py").write_text("x = 2\n")
    assert code_fingerprint(["lone_module:build"]) != lone
    assert code_fingerprint(["loose.models:build"]) != loose


def test_the_code_fingerprint_of_a_missing_package_says_so(folder: Path) -> None:
    with pytest.raises(InputError, match="no module nowhere"):
        code_fingerprint(["nowhere.models:build"])


@given(names=st.permutations(["json:dumps", "csv:reader", "csv:writer", "digits"]))
def test_the_code_fingerprint_does_not_depend_on_the_order(names: list[str]) -> None:
    assert code_fingerprint(names) == code_fingerprint(["csv:reader", "json:dumps"])


def test_data_without_local_files_has_no_fingerprint(tmp_path: Path) -> None:
    assert data_fingerprint("digits", {}) is None
    assert data_fingerprint("cifar10", {"root": str(tmp_path / "nowhere")}) is None


def test_the_data_fingerprint_follows_names_and_sizes_below_the_root(tmp_path: Path) -> None:
    (tmp_path / "train").mkdir()
    (tmp_path / "train" / "a.png").write_bytes(b"12")
    args = {"root": str(tmp_path)}
    first = data_fingerprint("image_folder", args)
    assert data_fingerprint("image_folder", args) == first
    (tmp_path / "train" / "a.png").write_bytes(b"123")
    second = data_fingerprint("image_folder", args)
    (tmp_path / "train" / "a.png").rename(tmp_path / "train" / "b.png")
    third = data_fingerprint("image_folder", args)
    assert len({first, second, third}) == 3


def test_the_data_fingerprint_is_the_same_wherever_the_root_lies(tmp_path: Path, folder: Path) -> None:
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x").write_bytes(b"1")
    assert data_fingerprint("mnist", {"root": "here"}) == data_fingerprint("mnist", {"root": str(tmp_path / "there")})


class TestWhatCannotBeThere:
    @pytest.fixture(autouse=True)
    def folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        monkeypatch.syspath_prepend(str(tmp_path))
        monkeypatch.chdir(tmp_path)
        (tmp_path / "nets_here").mkdir()
        (tmp_path / "nets_here" / "__init__.py").touch()
        return tmp_path

    def write(self, folder: Path, text: str) -> None:
        (folder / "nets_here" / "cnn.py").write_text(text)

    @pytest.mark.parametrize(
        "text",
        [
            "def build(): ...",
            "class build: ...",
            "build = print",
            "build: int = 1",
            "from os import path as build",
            "import build",
            "if True:\n    def build(): ...",
            "try:\n    build = 1\nexcept ImportError:\n    build = 2",
            "with open('x') as build: ...",
            "from elsewhere import *",
            "def __getattr__(name): ...",
        ],
    )
    def test_a_name_that_the_source_binds_is_not_refused(self, folder: Path, text: str) -> None:
        self.write(folder, text)
        refuse_missing(["nets_here.cnn:build", "digits"])

    @pytest.mark.parametrize("text", ["def built(): ...", "def other():\n    build = 1"])
    def test_a_name_that_it_does_not_bind_is_refused_with_the_nearest(self, folder: Path, text: str) -> None:
        self.write(folder, text)
        with pytest.raises(InputError, match=r"nets_here\.cnn:build: there is no build in .*cnn\.py"):
            refuse_missing(["nets_here.cnn:build"])

    def test_a_module_that_is_not_in_its_package_is_refused(self) -> None:
        with pytest.raises(InputError, match=r"there is no module nets_here\.gone"):
            refuse_missing(["nets_here.gone:build"])

    def test_source_that_is_no_python_is_refused_with_its_line(self, folder: Path) -> None:
        self.write(folder, "x = 1\ndef build(:\n")
        with pytest.raises(InputError, match=r"cnn\.py:2: "):
            refuse_missing(["nets_here.cnn:build"])

    def test_all_that_is_missing_is_said_at_once(self, folder: Path) -> None:
        self.write(folder, "")
        with pytest.raises(InputError) as caught:
            refuse_missing(["nets_here.cnn:a", "nets_here.cnn:b"])
        assert len(caught.value.messages) == 2
