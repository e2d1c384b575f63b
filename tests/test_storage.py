"""A run's folder: whole objects under relative names, on a local disk and on a file system that is none."""

import threading
from pathlib import Path

import pytest
from pyarrow import fs

from trainables.errors import InputError
from trainables.storage import Storage

MOCK = "mock:///bucket/runs"


@pytest.fixture(params=["local", "elsewhere"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    return Storage.open(str(tmp_path / "runs") if request.param == "local" else MOCK)


def test_what_was_written_is_read(storage: Storage) -> None:
    storage.write("space.yaml", b"model: x\n")
    assert storage.read("space.yaml") == b"model: x\n"


def test_a_second_write_replaces_the_first_whole(storage: Storage) -> None:
    storage.write("a", b"a long first version")
    storage.write("a", b"short")
    assert storage.read("a") == b"short"


def test_folders_come_into_being_with_their_first_object(storage: Storage) -> None:
    assert (storage.names(), storage.folders(), storage.has("outcomes/1.json")) == ([], [], False)
    storage.write("outcomes/1.json", b"{}")
    assert storage.folders() == ["outcomes"]
    assert storage.folder("outcomes").read("1.json") == b"{}"


def test_names_are_sorted_and_hold_neither_folders_nor_other_suffixes_nor_hidden_files(storage: Storage) -> None:
    for name in ("b.json", "a.json", "a.txt", ".a.json.1234.tmp", "deeper/c.json"):
        storage.write(name, b"")
    assert storage.names(".json") == ["a.json", "b.json"]
    assert storage.names() == ["a.json", "a.txt", "b.json"]


def test_reading_what_is_not_there_is_said(storage: Storage) -> None:
    with pytest.raises(FileNotFoundError):
        storage.read("nothing")


def test_deleting_is_complete_and_twice_is_no_error(storage: Storage) -> None:
    storage.write("checkpoints/t/1", b"1")
    storage.write("checkpoints/t/2", b"2")
    storage.write("kept", b"")
    storage.delete("checkpoints/t/1")
    storage.delete("checkpoints/t/1")
    assert storage.folder("checkpoints/t").names() == ["2"]
    storage.delete_folder("checkpoints")
    storage.delete_folder("checkpoints")
    assert (storage.folders(), storage.names()) == ([], ["kept"])


@pytest.mark.parametrize("name", ["../up", "/etc/passwd", "a/../../b", ".."])
def test_no_name_leaves_the_folder(storage: Storage, name: str) -> None:
    for action in (lambda: storage.write(name, b""), lambda: storage.read(name), lambda: storage.delete_folder(name)):
        with pytest.raises(ValueError, match="would leave"):
            action()


def test_a_failed_write_leaves_the_old_object_and_nothing_else(tmp_path: Path) -> None:
    storage = Storage.open(str(tmp_path))
    storage.write("a", b"old")
    with pytest.raises(TypeError):
        storage.write("a", "not bytes")  # type: ignore[arg-type]
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert storage.read("a") == b"old"


def test_a_failed_rename_leaves_no_half_object(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with pytest.raises(OSError, match="a"):
        Storage.open(str(tmp_path)).write("a", b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_reader_never_sees_half_an_object(tmp_path: Path) -> None:
    storage = Storage.open(str(tmp_path))
    versions = [bytes([number]) * 300_000 for number in range(20)]
    storage.write("a", versions[0])
    writer = threading.Thread(target=lambda: [storage.write("a", version) for version in versions])
    writer.start()
    seen = {storage.read("a")}
    while writer.is_alive():
        seen.add(storage.read("a"))
    writer.join()
    assert seen <= set(versions)
    assert storage.read("a") == versions[-1]


def test_a_relative_path_is_kept_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray changes a worker's working folder."""
    monkeypatch.chdir(tmp_path)
    storage = Storage.open("runs")
    monkeypatch.chdir("/")
    storage.write("a", b"1")
    assert (tmp_path / "runs" / "a").read_bytes() == b"1"
    assert storage.location == str(tmp_path / "runs")


@pytest.mark.parametrize("as_uri", [False, True])
def test_a_folder_opens_again_by_its_location(tmp_path: Path, as_uri: bool) -> None:
    folder = Storage.open(tmp_path.as_uri() if as_uri else str(tmp_path)).folder("run 1?")
    folder.write("a", b"1")
    assert Storage.open(folder.location).read("a") == b"1"
    assert folder.local_path == tmp_path / "run 1?"


def test_the_options_of_a_uri_stay_at_its_end() -> None:
    storage = Storage(fs.LocalFileSystem(), "bucket/runs", "s3://bucket/runs?region=eu-west-1&scheme=http")
    assert storage.folder("a/run 1").location == "s3://bucket/runs/a/run%201?region=eu-west-1&scheme=http"


def test_an_object_store_has_no_local_path() -> None:
    storage = Storage.open(MOCK)
    assert not storage.is_local
    with pytest.raises(ValueError, match="not a local folder"):
        _ = storage.local_path


@pytest.mark.parametrize("location", ["nonsense://bucket/runs", "s3://", "mock://"])
def test_a_location_that_cannot_be_a_store_is_refused_with_an_example(location: str) -> None:
    with pytest.raises(InputError, match=r"such as s3://bucket/runs") as refusal:
        Storage.open(location)
    assert location in refusal.value.messages[0]
