"""Ctrl-C and SIGTERM: the first asks the sweep to end in order, the second ends it at once."""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

INTERRUPTED_EXIT_CODE = 130
REPEAT_SECONDS = 1.0


class Interruption:
    """Whether the sweep was asked to end."""

    def __init__(self) -> None:
        self.requested = False
        self._at_once_from = 0.0

    def handle(self, signum: int, frame: FrameType | None) -> None:
        """A wrapper may forward a signal that the process group got too: repeats within a second are one."""
        if self.requested and time.monotonic() < self._at_once_from:
            return
        if self.requested:
            sys.stderr.write("stopped at once; what was finished is stored\n")
            sys.stderr.flush()
            os._exit(INTERRUPTED_EXIT_CODE)
        self.requested = True
        self._at_once_from = time.monotonic() + REPEAT_SECONDS
        sys.stderr.write("\nending: what is finished is stored; once more to stop at once\n")


@contextmanager
def interruptible() -> Iterator[Interruption]:
    """Both signals are caught within the block; Ray's own handlers, which abort, are put back afterwards."""
    interruption = Interruption()
    before: dict[int, Callable[[int, FrameType | None], Any] | int | None] = {
        signum: signal.signal(signum, interruption.handle) for signum in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield interruption
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)


def run_interruptibly(work: Callable[[], None], interruption: Interruption, *, grace_seconds: float) -> bool:
    """Whether `work` ended. It runs in a thread of its own, and is given up `grace_seconds` after an interruption.

    A signal to the whole process group ends Ray's own processes too, and then Ray may never return. An exception of
    `work` is raised here, but for one that follows an interruption.
    """
    raised: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - it is raised again in the caller's thread
            raised.append(error)

    thread = threading.Thread(target=run, name="engine", daemon=True)
    thread.start()
    deadline = None
    while thread.is_alive() and (deadline is None or time.monotonic() < deadline):
        thread.join(timeout=0.1)
        if interruption.requested and deadline is None:
            deadline = time.monotonic() + grace_seconds
    if raised and not interruption.requested:
        raise raised[0]
    return not thread.is_alive() and not raised
