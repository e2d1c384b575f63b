"""YAML as the spaces are written in: what is a number, what is a word, and what is refused where."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from trainables.errors import InputError
from trainables.faults import Faults
from trainables.specs import Precision
from trainables.yaml_reader import format_yaml, parse_yaml, plain, read_text


def read(text: str) -> Any:
    faults = Faults()
    node = parse_yaml(text, "x.yaml", faults)
    assert faults.messages == ()
    assert node is not None
    return plain(node)


def faults_of(text: str) -> tuple[str, ...]:
    faults = Faults()
    parse_yaml(text, "x.yaml", faults)
    return faults.messages


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("1e-3", 0.001),
        ("3e-4", 0.0003),
        ("1e3", 1000.0),
        ("1e+3", 1000.0),
        ("1.0e3", 1000.0),
        ("1.e-3", 0.001),
        (".5", 0.5),
        ("-2.5E-1", -0.25),
        ("64", 64),
        ("-1", -1),
        ("0x1F", 31),
        ("0o10", 8),
    ],
)
def test_numbers_are_numbers_however_they_are_written(written: str, meant: float) -> None:
    value = read(f"v: {written}")["v"]
    assert (value, type(value)) == (meant, type(meant))


@pytest.mark.parametrize(
    "word", ["off", "on", "yes", "no", "y", "n", "1:30", "1_000", "2024-01-01", "none", "None", "fp16"]
)
def test_words_that_yaml_1_1_changes_stay_words(word: str) -> None:
    assert read(f"v: {word}") == {"v": word}


@pytest.mark.parametrize(
    ("written", "meant"), [("true", True), ("False", False), ("null", None), ("~", None), ("", None)]
)
def test_true_false_and_null_are_what_they_say(written: str, meant: bool | None) -> None:
    assert read(f"v: {written}")["v"] is meant


def test_a_number_in_quotes_is_text() -> None:
    assert read("v: ['010', \"3e-4\", !!str 7]") == {"v": ["010", "3e-4", "7"]}


def test_a_leading_zero_is_refused_since_readers_differ_on_it() -> None:
    assert faults_of("a: 1\nv: [1, 010]") == (
        "x.yaml:2: v: 010 is octal to some readers and decimal to others; write 10, or '010' for text",
    )


@pytest.mark.parametrize("written", [".nan", ".inf", "-.INF", "1e999"])
def test_numbers_that_are_not_finite_are_refused(written: str) -> None:
    assert faults_of(f"v: {written}") == (f"x.yaml:1: v: must be a finite number, got {written}",)


def test_a_whole_number_of_absurd_length_is_refused() -> None:
    assert faults_of(f"v: {'9' * 5000}")[0].startswith("x.yaml:1: v: must be a whole number of sensible length")


def test_every_fault_of_a_file_is_found_at_once_with_its_line() -> None:
    text = "a: 1\nb:\n  c: 1\n  c: 2\n1: x\na: 2\n<<: {d: 1}\n[e]: 3\nf: !!python/name:os.system x\ng: !!set {h}\n"
    assert faults_of(text) == (
        "x.yaml:4: b.c: is given twice, first in line 3; leave one of them out",
        "x.yaml:5: a key must be text (in quotes where it looks otherwise), got 1",
        "x.yaml:6: a: is given twice, first in line 1; leave one of them out",
        "x.yaml:7: a key must be text (in quotes where it looks otherwise), got <<",
        "x.yaml:8: a key must be text (in quotes where it looks otherwise), got a collection",
        "x.yaml:9: f: has the tag !!python/name:os.system, and tags are not used here; take it away",
        "x.yaml:10: g: has the tag !!set, and tags are not used here; take it away",
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [\n b", "x.yaml:2: is not valid YAML: while parsing a flow sequence, expected ',' or ']', but got"),
        ("a:\n\tb: 1", "x.yaml:2: is not valid YAML: while scanning for the next token, found character '\\t'"),
        ("a: 1\nb: \x00", "x.yaml:2: is not valid YAML: the character '\\x00' is not allowed"),
        ("a: *b", "x.yaml:1: is not valid YAML: found undefined alias 'b'"),
        ("a: 1\n---\nb: 2", "x.yaml:2: is not valid YAML: expected a single document in the stream"),
        ("a: &b [*b]", "x.yaml:1: a: holds itself, through an alias"),
        ('a: "\\ud800"', "x.yaml:1: a: holds half of a surrogate pair"),
        ("[" * 600, "x.yaml: is nested too deeply to be read"),
        ("", "x.yaml: is empty"),
        ("# nothing\n", "x.yaml: is empty"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_line(text: str, message: str) -> None:
    (found,) = faults_of(text)
    assert found.startswith(message)


def test_aliases_stand_for_what_they_name() -> None:
    assert read("a: &x [1, 2]\nb: *x") == {"a": [1, 2], "b": [1, 2]}


def test_values_that_grow_without_end_through_aliases_are_refused() -> None:
    names = "abcdefghijkl"
    lines = ["a: &a [x, x, x, x]"]
    lines += [f"{name}: &{name} [{', '.join([f'*{before}'] * 4)}]" for before, name in pairwise(names)]
    with pytest.raises(InputError, match="more than 100,000 values"):
        faults_of("\n".join(lines))


def test_a_file_with_a_byte_order_mark_and_windows_line_ends_is_read(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_bytes("\ufeffa: 1\r\nb: é\r\n".encode())
    assert read(read_text(str(path))) == {"a": 1, "b": "é"}


def test_a_file_that_is_no_utf_8_is_refused_with_the_line(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_bytes(b"a: 1\nb: \xe9\n")
    with pytest.raises(InputError) as caught:
        read_text(str(path))
    assert caught.value.messages == (f"{path}:2: byte 0xe9 is no UTF-8; save the file as UTF-8 text",)


def test_a_folder_is_refused_with_the_files_in_it(tmp_path: Path) -> None:
    for name in ("b.yaml", "a.yml", "c.txt"):
        (tmp_path / name).touch()
    with pytest.raises(InputError) as caught:
        read_text(str(tmp_path))
    assert caught.value.messages == (
        f"{tmp_path}: is a folder, and a YAML file is needed; give one of those in it: a.yml, b.yaml",
    )


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nothing\.yaml: there is no such file"):
        read_text(str(tmp_path / "nothing.yaml"))


scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(10**12), 10**12)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
    | st.sampled_from(
        ["off", "3e-4", "010", "1:30", "null", "~", "=", "<<", "", " ", "2001-01-01", "0x1", "1_0", "a: b"]
    )
)
keys = st.text(st.characters(exclude_categories=["Cs"]), max_size=10).filter(lambda key: key != "<<")
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4), max_leaves=10
)


@given(st.dictionaries(keys, values, max_size=5))
def test_what_is_written_is_read_back_equal(mapping: dict[str, Any]) -> None:
    assert read(format_yaml(mapping) or "{}") == mapping


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=20))
def test_text_is_written_so_that_a_reader_of_yaml_1_1_takes_it_for_the_same(text: str) -> None:
    written = format_yaml({"v": text})
    assert yaml.safe_load(written) == read(written) == {"v": text}


def test_choices_are_written_as_their_text() -> None:
    assert format_yaml({"precision": [Precision.FP32, Precision.BF16]}) == "precision: [fp32, bf16]\n"


@given(st.text(alphabet="ab:-[]{}#'\"\n\t &*!|>%@,?01.e~", max_size=40))
def test_any_text_is_read_or_refused_and_never_raises(text: str) -> None:
    faults = Faults()
    node = parse_yaml(text, "x.yaml", faults)
    assert node is not None or faults.messages
