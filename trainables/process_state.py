"""What a trial changes in its process: set for it, and put back after it, so that trials can share a process."""

import ctypes
import gc
import logging
import platform
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from trainables.compilation import reset_compiler
from trainables.precision import restored_switches
from trainables.random_state import generator_states, restore_generators

_log = logging.getLogger(__name__)
_SPOILT = "the device answers no more: a kernel failed on it, and only a new process can use it again"


_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # of glibc's malloc.h
_KEPT_BYTES, _LARGEST_IN_HEAP_BYTES = 512 * 1024**2, 32 * 1024**2


def keep_freed_memory() -> None:
    """Lets the process keep what a step frees, for the next step.

    By its default glibc gives the top of the heap back to the system whenever it can and asks for it again, page by
    page: on a CPU that cost up to a tenth of a small step, or nothing, as the heap happened to lie. It stays so.
    """
    if platform.libc_ver()[0] == "glibc":
        libc = ctypes.CDLL(None)
        libc.mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)
        libc.mallopt(_M_MMAP_THRESHOLD, _LARGEST_IN_HEAP_BYTES)


@contextmanager
def process_for_a_trial(device: torch.device, *, cpu_threads: int | None) -> Iterator[None]:
    """Sets the compute threads and forgets compiled code; afterwards threads, switches and generators are as before.

    Until `release_memory` the garbage collector looks at nothing that was there before.
    """
    gc.freeze()  # half a million objects of the libraries: to search them takes a third of a second, once a trial
    threads = torch.get_num_threads()
    reset_compiler()
    if device.type == "cpu":
        keep_freed_memory()
    forget_peak_memory(device)
    with torch.accelerator.device_index(device.index), restored_switches(), restored_generators(device):
        try:
            if cpu_threads is not None:
                torch.set_num_threads(cpu_threads)
            yield
        finally:
            torch.set_num_threads(threads)
            reset_compiler()


@contextmanager
def restored_generators(device: torch.device) -> Iterator[None]:
    before = generator_states(device)
    try:
        yield
    finally:
        try:
            restore_generators(before, device)
        except RuntimeError:
            _log.warning(_SPOILT, exc_info=True)


def peak_memory_bytes(device: torch.device) -> int | None:
    """Since `process_for_a_trial` began; None on a CPU, whose memory torch does not count."""
    return None if device.type == "cpu" else torch.accelerator.max_memory_allocated(device)


def forget_peak_memory(device: torch.device) -> None:
    """`peak_memory_bytes` counts from here on."""
    if device.type != "cpu":
        torch.accelerator.reset_peak_memory_stats(device)


def release_memory() -> None:
    """After a trial's objects are out of reach: collects them, and gives the allocator's memory back to the device."""
    free_memory()
    gc.unfreeze()


def free_memory() -> None:
    """Within a trial: collects what is out of reach, and gives the allocator's memory back to the device."""
    gc.collect()
    try:
        torch.accelerator.empty_cache()
    except RuntimeError:
        _log.warning(_SPOILT, exc_info=True)
