"""Between two trials of a process: what the first one left is collected, and the rest of the heap not searched."""

import gc
import weakref

import torch

from trainables.process_state import process_for_a_trial, release_memory


class Cyclic:
    def __init__(self) -> None:
        self.itself = self


def test_what_was_there_before_a_trial_is_left_out_of_its_collection_only() -> None:
    older = Cyclic()
    forgotten = weakref.ref(older)
    with process_for_a_trial(torch.device("cpu"), cpu_threads=None):
        assert gc.get_freeze_count() > 0
        own = weakref.ref(Cyclic())
        del older
    release_memory()
    assert own() is None
    assert gc.get_freeze_count() == 0
    assert forgotten() is not None
    gc.collect()
    assert forgotten() is None
