"""Interruption: the first signal asks, the engine gets its grace, and a hanging engine is given up."""

import os
import signal
import threading

import pytest

from orchestrator.interruption import Interruption, interruptible, run_interruptibly


def test_the_first_signal_asks_and_the_handlers_are_put_back() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with interruptible() as interruption:
        assert not interruption.requested
        os.kill(os.getpid(), signal.SIGTERM)
        assert interruption.requested
        os.kill(os.getpid(), signal.SIGTERM)  # the same signal forwarded by a wrapper: it must not end this process
    assert signal.getsignal(signal.SIGTERM) == before


def test_work_that_ends_ended() -> None:
    done: list[int] = []
    assert run_interruptibly(lambda: done.append(1), Interruption(), grace_seconds=0.0)
    assert done == [1]


def test_an_engine_that_hangs_after_an_interruption_is_given_up() -> None:
    interruption = Interruption()
    interruption.requested = True
    forever = threading.Event()
    assert not run_interruptibly(lambda: forever.wait(60) and None, interruption, grace_seconds=0.0)
    forever.set()


def test_an_exception_of_the_work_is_raised_in_the_caller() -> None:
    def work() -> None:
        raise KeyError("bug")

    with pytest.raises(KeyError, match="bug"):
        run_interruptibly(work, Interruption(), grace_seconds=0.0)


def test_an_exception_that_follows_an_interruption_is_the_engines_end() -> None:
    interruption = Interruption()

    def work() -> None:
        interruption.requested = True
        raise ConnectionError("the cluster is gone")

    assert not run_interruptibly(work, interruption, grace_seconds=5.0)
