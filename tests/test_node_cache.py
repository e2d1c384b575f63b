"""Files that a node makes once."""

import multiprocessing
from pathlib import Path

import pytest

from trainables.node_cache import cache_folder, made_once


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "sweep-orchestrator"


def write_whole(path: Path) -> None:
    path.write_text("whole")


def test_a_file_is_made_the_first_time_only(cache: Path) -> None:
    made: list[Path] = []

    def make(path: Path) -> None:
        made.append(path)
        path.write_text("whole")

    assert made_once("x", make) == made_once("x", make) == cache / "x"
    assert (cache / "x").read_text() == "whole"
    assert len(made) == 1


def _make_in_process(log: Path, barrier: object) -> None:
    def make(path: Path) -> None:
        with log.open("a") as file:
            file.write("made\n")
        path.mkdir()
        (path / "part").write_text("whole")

    barrier.wait()  # type: ignore[attr-defined]
    assert (made_once("folder", make) / "part").read_text() == "whole"


def test_processes_that_want_it_at_once_make_it_once(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    barrier = context.Barrier(4)
    processes = [context.Process(target=_make_in_process, args=(tmp_path / "log", barrier)) for _ in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * 4
    assert (tmp_path / "log").read_text() == "made\n"


def test_what_was_begun_and_failed_leaves_nothing_and_is_made_again(cache: Path) -> None:
    def fail(path: Path) -> None:
        path.write_text("half")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        made_once("x", fail)
    assert [path.name for path in cache.iterdir()] == [".x.lock"]
    assert made_once("x", write_whole).read_text() == "whole"


def test_what_a_killed_process_left_half_made_is_cleared_away(cache: Path) -> None:
    cache.mkdir(parents=True)
    (cache / ".x.0123abcd.tmp").write_text("half")
    made_once("x", write_whole)
    assert sorted(path.name for path in cache.iterdir()) == [".x.lock", "x"]


def test_a_home_that_cannot_be_written_is_replaced_by_a_temporary_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert cache_folder().parent == tmp_path
    assert cache_folder().is_dir()
