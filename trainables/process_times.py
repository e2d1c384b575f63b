"""CPU time of process trees, so that what a sweep used itself can be told from what others used."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

import psutil


class ProcessKey(NamedTuple):
    """The system gives a pid again; with the time of its start it names one process."""

    pid: int
    created: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessTime:
    parent: int
    own_seconds: float
    ended_children_seconds: float
    """Of children that have ended, over their whole lives; the system counts those that the process waited for."""


ProcessTimes = Mapping[ProcessKey, ProcessTime]


def read_trees(roots: Iterable[int]) -> dict[ProcessKey, ProcessTime]:
    """All living processes of the trees under these pids; what is not there any more is left out."""
    times: dict[ProcessKey, ProcessTime] = {}
    for root in roots:
        if root in pids_of(times):
            continue
        with suppress(psutil.Error):
            process = psutil.Process(root)
            times |= _read([process, *process.children(recursive=True)])
    return times


def _read(processes: Iterable[psutil.Process]) -> Iterator[tuple[ProcessKey, ProcessTime]]:
    for process in processes:
        with suppress(psutil.Error), process.oneshot():
            spent = process.cpu_times()
            yield (
                ProcessKey(process.pid, process.create_time()),
                ProcessTime(
                    parent=process.ppid(),
                    own_seconds=spent.user + spent.system,
                    ended_children_seconds=spent.children_user + spent.children_system,
                ),
            )


def pids_of(times: ProcessTimes) -> frozenset[int]:
    return frozenset(key.pid for key in times)


def tree_of(times: ProcessTimes, root: int) -> frozenset[int]:
    """`root` and its descendants among the processes of a reading."""
    found = {root}
    while more := {key.pid for key, time in times.items() if time.parent in found} - found:
        found |= more
    return frozenset(found)


def used_seconds(before: ProcessTimes, after: ProcessTimes) -> float:
    """CPU seconds used between two readings. Of a process that ended in between: if some process waited for it."""
    counted_before = _seconds_of_the_ended(before, pids_of(after))
    used = 0.0
    for key, time in after.items():
        earlier = before.get(key)
        own, ended = (earlier.own_seconds, earlier.ended_children_seconds) if earlier else (0.0, 0.0)
        used += time.own_seconds - own
        # a child's whole life arrives at once when it is waited for: what was seen of it before is not of this time
        used += max(0.0, time.ended_children_seconds - ended - counted_before.get(key.pid, 0.0))
    return used


def _seconds_of_the_ended(before: ProcessTimes, living: frozenset[int]) -> dict[int, float]:
    """Seconds that processes had used before they ended, under the pid of the nearest ancestor that lives."""
    parents = {key.pid: time.parent for key, time in before.items()}
    seconds: dict[int, float] = {}
    for key, time in before.items():
        if key.pid in living:
            continue
        heir = time.parent
        while heir in parents and heir not in living:
            heir = parents[heir]
        seconds[heir] = seconds.get(heir, 0.0) + time.own_seconds + time.ended_children_seconds
    return seconds
