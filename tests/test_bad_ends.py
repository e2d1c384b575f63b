"""What an exception means for a trial, in words."""

import pytest
import torch

from tests.trial_building import toy_spec
from trainables.bad_ends import DivergedError, UnsupportedError, bad_end
from trainables.errors import InputError
from trainables.outcomes import TrialStatus

SPEC = toy_spec(batch_size=256)


def end_of(error: BaseException) -> tuple[TrialStatus, str]:
    try:
        raise error
    except BaseException as caught:  # noqa: BLE001 - to have the traceback that a raised error has
        ended = bad_end(caught, SPEC)
    return ended.status, ended.reason


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB"),
        RuntimeError("CUDA error: out of memory"),
        RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
        RuntimeError("cuDNN error: CUDNN_STATUS_ALLOC_FAILED"),
        RuntimeError("HIP out of memory. Tried to allocate 2 GiB"),
        RuntimeError("level_zero backend failed with error: 39 (UR_RESULT_ERROR_OUT_OF_DEVICE_MEMORY)"),
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes."),
        MemoryError("Unable to allocate 3 GiB"),
    ],
)
def test_memory_that_ran_out_is_recognised_wherever_it_did(error: Exception) -> None:
    status, reason = end_of(error)
    assert status is TrialStatus.OUT_OF_MEMORY
    assert reason.startswith("out of memory")
    assert "at batch 256" in reason


def test_an_out_of_memory_that_a_compiler_wrapped_is_one_too() -> None:
    wrapped = RuntimeError("backend failed")
    wrapped.__cause__ = torch.OutOfMemoryError("CUDA out of memory")
    assert end_of(wrapped)[0] is TrialStatus.OUT_OF_MEMORY


def test_a_runtime_error_about_something_else_is_a_failure() -> None:
    assert end_of(RuntimeError("mat1 and mat2 shapes cannot be multiplied"))[0] is TrialStatus.FAILED


def test_a_failure_says_type_message_and_place() -> None:
    status, reason = end_of(KeyError("no such layer"))
    assert status is TrialStatus.FAILED
    assert reason.startswith("KeyError: 'no such layer' (test_bad_ends.py:")
    assert reason.endswith("in end_of)")


def test_a_failure_without_a_message_is_still_named() -> None:
    assert end_of(AssertionError())[1].startswith("AssertionError (test_bad_ends.py:")


def test_a_place_in_torch_gives_way_to_the_users_own() -> None:
    def users_code() -> None:
        torch.zeros(2, 3) @ torch.zeros(2, 3)

    try:
        users_code()
    except RuntimeError as error:
        reason = bad_end(error, SPEC).reason
    assert "in users_code)" in reason


def test_an_exception_that_a_loader_worker_passed_on_keeps_its_place() -> None:
    text = (
        "Caught ValueError in DataLoader worker process 1.\nOriginal Traceback (most recent call last):\n"
        '  File "/v/lib/python3.11/site-packages/torch/utils/data/worker.py", line 349, in _worker_loop\n'
        "    data = fetcher.fetch(index)\n"
        '  File "/home/user/birds.py", line 12, in __getitem__\n'
        '    raise ValueError("bad image")\nValueError: bad image\n'
    )
    assert end_of(ValueError(text)) == (
        TrialStatus.FAILED,
        "ValueError: bad image (in a data loader worker) (birds.py:12 in __getitem__)",
    )


def test_a_dead_loader_worker_hints_at_memory() -> None:
    status, reason = end_of(RuntimeError("DataLoader worker (pid(s) 123, 124) exited unexpectedly"))
    assert status is TrialStatus.FAILED
    assert "/dev/shm" in reason  # noqa: S108 - the word, not a file
    assert "num_workers" in reason


def test_a_loader_that_gives_nothing_is_said_to_have_timed_out() -> None:
    assert end_of(RuntimeError("DataLoader timed out after 600 seconds")) == (
        TrialStatus.FAILED,
        "data loader timed out: no worker gave a batch for 600 seconds",
    )


def test_wrong_input_is_repeated_word_for_word() -> None:
    assert end_of(InputError("dataset birds: no folder /birds", "second")) == (
        TrialStatus.FAILED,
        "dataset birds: no folder /birds; second",
    )


def test_the_trials_own_ends_have_their_own_statuses() -> None:
    assert end_of(DivergedError("loss became NaN at step 5")) == (TrialStatus.DIVERGED, "loss became NaN at step 5")
    assert end_of(UnsupportedError("no"))[0] is TrialStatus.UNSUPPORTED


def test_a_message_of_many_lines_is_shortened_to_its_first() -> None:
    assert len(end_of(ValueError("x" * 10_000 + "\nsecond line"))[1]) < 700
