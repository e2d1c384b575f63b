"""What process trees used between two readings, also by processes that came and went."""

import os
import subprocess
import sys
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainables.process_times import ProcessKey, ProcessTime, ProcessTimes, pids_of, read_trees, tree_of, used_seconds


def a_tree(*rows: tuple[int, int, float, float]) -> dict[ProcessKey, ProcessTime]:
    """Rows of pid, parent, own seconds and seconds of ended children."""
    return {
        ProcessKey(pid, 100.0 + pid): ProcessTime(parent=parent, own_seconds=own, ended_children_seconds=ended)
        for pid, parent, own, ended in rows
    }


def test_living_processes_used_what_their_counters_grew_by() -> None:
    before = a_tree((1, 0, 5.0, 1.0), (2, 1, 3.0, 0.0))
    assert used_seconds(before, a_tree((1, 0, 6.0, 1.0), (2, 1, 3.5, 0.0))) == 1.5


def test_a_process_that_started_in_between_used_all_that_it_has() -> None:
    assert used_seconds(a_tree((1, 0, 5.0, 0.0)), a_tree((1, 0, 5.0, 0.0), (2, 1, 0.75, 0.0))) == 0.75


def test_of_a_child_that_was_waited_for_only_the_time_since_the_reading_counts() -> None:
    before = a_tree((1, 0, 5.0, 0.0), (2, 1, 3.0, 0.0))
    assert used_seconds(before, a_tree((1, 0, 5.0, 3.25))) == 0.25


def test_of_a_child_that_nobody_waited_for_nothing_is_taken_back() -> None:
    before = a_tree((1, 0, 5.0, 0.0), (2, 1, 3.0, 0.0))
    assert used_seconds(before, a_tree((1, 0, 5.5, 0.0))) == 0.5


def test_a_whole_branch_that_ended_is_counted_once() -> None:
    before = a_tree((1, 0, 5.0, 0.0), (2, 1, 3.0, 0.5), (3, 2, 2.0, 0.0))
    after = a_tree((1, 0, 5.0, 6.0))  # 2 waited for 3, and 1 for 2: .5 more than was seen of them
    assert used_seconds(before, after) == pytest.approx(0.5)


def test_a_pid_given_again_is_another_process() -> None:
    before = a_tree((1, 0, 5.0, 0.0), (2, 1, 3.0, 0.0))
    again = {ProcessKey(2, 999.0): ProcessTime(parent=1, own_seconds=0.5, ended_children_seconds=0.0)}
    assert used_seconds(before, a_tree((1, 0, 5.0, 0.0)) | again) == 0.5


@given(st.lists(st.floats(0, 10), min_size=1, max_size=8), st.data())
def test_no_history_of_a_family_used_less_than_nothing(grown: list[float], data: st.DataObject) -> None:
    before: ProcessTimes = a_tree(
        *((pid, data.draw(st.integers(0, pid - 1)), 2.0, 1.0) for pid in range(1, len(grown) + 1))
    )
    after = {
        key: replace(time, own_seconds=time.own_seconds + more)
        for (key, time), more in zip(before.items(), grown, strict=True)
        if data.draw(st.booleans())
    }
    living = sum(more for (key, _), more in zip(before.items(), grown, strict=True) if key in after)
    assert used_seconds(before, after) == pytest.approx(living)


def test_a_tree_is_its_root_and_all_below_it() -> None:
    times = a_tree((1, 0, 0, 0), (2, 1, 0, 0), (3, 2, 0, 0), (4, 1, 0, 0))
    assert tree_of(times, 2) == {2, 3}


BURN = "import sys, time\nwhile time.process_time() < 0.2: pass\nprint(flush=True)\nsys.stdin.read()"


def test_a_real_child_is_counted_while_it_runs_and_after_its_end() -> None:
    start = read_trees([os.getpid()])
    with subprocess.Popen([sys.executable, "-c", BURN], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        running = read_trees([os.getpid()])
        assert {os.getpid(), child.pid} <= pids_of(running)
        assert used_seconds(start, running) >= 0.19
    ended = read_trees([os.getpid()])
    assert child.pid not in pids_of(ended)
    assert used_seconds(start, ended) >= 0.19
    assert used_seconds(running, ended) < 0.19


def test_a_root_within_another_tree_is_counted_once_and_one_that_ended_not_at_all() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        times = read_trees([os.getpid(), child.pid])
        assert len(times) == len(pids_of(times))
        child.communicate(b"\n")
    assert read_trees([child.pid]) == {}
