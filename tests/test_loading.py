"""Batches that do not depend on who loads them."""

import multiprocessing
import os
import random
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.utils.data import Dataset, get_worker_info

from trainables.datasets import load_image_data
from trainables.errors import InputError
from trainables.image_sources import TensorImages
from trainables.loading import Batch, EvaluationBatches, LoaderStalled, TrainingBatches
from trainables.specs import CompileMode, Precision, TrainingConfig

CONFIG = TrainingConfig(precision=Precision.FP32, batch_size=4, compile=CompileMode.OFF, lr=1e-3, num_workers=0)


class Items(Dataset[Any]):
    """Image i is filled with i, plus what `change` adds; its label is i."""

    def __init__(self, count: int, change: Callable[[Tensor], Tensor] = lambda image: image) -> None:
        self.count = count
        self.change = change

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        return self.change(torch.full((1, 2, 2), float(index))), index


class Augmented(Items):
    """Draws from every global generator and from three of its own."""

    def __init__(self, count: int) -> None:
        super().__init__(count)
        self.numpy, self.python, self.torch = np.random.default_rng(0), random.Random(0), torch.Generator()

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        draws = [
            torch.rand(1).item(),
            float(np.random.rand()),
            random.random(),
            self.numpy.random(),
            self.python.random(),
            torch.rand(1, generator=self.torch).item(),
        ]
        return torch.tensor(draws).reshape(1, 2, 3), index


class Counting(Items):
    """Remembers what was loaded in this process."""

    def __init__(self, count: int) -> None:
        super().__init__(count)
        self.loaded: list[int] = []

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        self.loaded.append(index)
        return super().__getitem__(index)


class InAWorker(Items):
    """Does something in a loader worker's third item, never in the training process."""

    def __init__(self, act: Callable[[], None]) -> None:
        super().__init__(16)
        self.act = act

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        if index == 3 and get_worker_info() is not None:
            self.act()
        return super().__getitem__(index)


def in_memory(count: int) -> TensorImages:
    return TensorImages(torch.arange(count * 4.0).reshape(count, 1, 2, 2), torch.arange(count))


def training(dataset: Dataset[Any], *, seed: int = 0, **knobs: Any) -> TrainingBatches:
    return TrainingBatches(dataset, config=replace(CONFIG, **knobs), seed=seed, pin_memory=False)


def drawn(batches: Iterator[Batch]) -> list[Batch]:
    return [(images.clone(), labels.clone()) for images, labels in batches]


def epochs(dataset: Dataset[Any], *, count: int = 2, seed: int = 0, **knobs: Any) -> list[Batch]:
    batches = training(dataset, seed=seed, **knobs)
    every = [batch for epoch in range(count) for batch in drawn(batches.epoch(epoch))]
    batches.close()
    return every


def same(first: list[Batch], second: list[Batch]) -> bool:
    return len(first) == len(second) and all(
        torch.equal(images, other_images) and torch.equal(labels, other_labels)
        for (images, labels), (other_images, other_labels) in zip(first, second, strict=True)
    )


@pytest.mark.filterwarnings("ignore:This DataLoader will create")  # more workers than cores is what is tried
@pytest.mark.parametrize("dataset", [in_memory(18), Augmented(18)], ids=["in memory", "augmented"])
@pytest.mark.parametrize("num_workers", [1, 3])
def test_workers_give_the_batches_that_the_training_process_makes(dataset: Dataset[Any], num_workers: int) -> None:
    assert same(epochs(dataset), epochs(dataset, num_workers=num_workers))


def test_workers_that_end_with_each_epoch_and_prefetch_far_give_the_same_batches() -> None:
    dataset = Augmented(18)
    assert same(epochs(dataset), epochs(dataset, num_workers=2, persistent_workers=False, prefetch_factor=5))


def test_no_draw_repeats_within_an_epoch_or_in_the_next() -> None:
    values = torch.cat([images.flatten() for images, _ in epochs(Augmented(16), num_workers=2)])
    assert len(torch.unique(values)) == len(values)


def test_another_seed_gives_another_order_and_other_draws() -> None:
    assert not same(epochs(Augmented(16), seed=0), epochs(Augmented(16), seed=1))
    assert not same(epochs(in_memory(16), seed=0), epochs(in_memory(16), seed=1))


@given(images=st.integers(1, 40), batch_size=st.integers(1, 50), epoch=st.integers(0, 3))
def test_an_epoch_is_full_batches_of_different_images(images: int, batch_size: int, epoch: int) -> None:
    batches = training(in_memory(images), batch_size=batch_size)
    labels = [labels for _, labels in batches.epoch(epoch)]
    assert [len(batch) for batch in labels] == [batches.batch_size] * batches.steps_per_epoch
    assert batches.batch_size == min(images, batch_size)
    every = torch.cat(labels)
    assert images - len(every) < batches.batch_size
    assert len(torch.unique(every)) == len(every)


@pytest.mark.parametrize("num_workers", [0, 2])
@pytest.mark.parametrize("start_batch", [0, 1, 3, 4, 9])
def test_an_epoch_goes_on_from_any_batch(num_workers: int, start_batch: int) -> None:
    whole = drawn(training(Augmented(18)).epoch(5))
    batches = training(Augmented(18), num_workers=num_workers)
    assert same(drawn(batches.epoch(5, start_batch)), whole[start_batch:])
    batches.close()


def test_what_lies_before_the_start_is_not_loaded() -> None:
    dataset = Counting(16)
    batches = training(dataset)
    dataset.loaded.clear()
    assert len(drawn(batches.epoch(0, start_batch=3))) == 1
    assert len(dataset.loaded) == 4


@pytest.mark.parametrize("persistent_workers", [True, False])
def test_an_epoch_that_was_given_up_leaves_nothing_behind(persistent_workers: bool) -> None:
    batches = training(Augmented(40), num_workers=2, persistent_workers=persistent_workers)
    next(batches.epoch(0))
    assert same(drawn(batches.epoch(1)), drawn(training(Augmented(40)).epoch(1)))
    batches.close()


@pytest.mark.parametrize("num_workers", [0, 2])
def test_the_training_process_draws_on_as_if_nothing_had_been_loaded(num_workers: int) -> None:
    dataset = Augmented(16)
    before = states()
    epochs(dataset, num_workers=num_workers)
    drawn(iter(EvaluationBatches(dataset, batch_size=4, num_workers=num_workers, seed=0, pin_memory=False)))
    assert states() == before


def states() -> tuple[Any, ...]:
    return torch.get_rng_state().tolist(), repr(np.random.get_state()), random.getstate()


def test_closing_ends_the_worker_processes_also_in_mid_epoch() -> None:
    batches = training(Augmented(40), num_workers=2)
    half = batches.epoch(0)
    next(half)
    assert len(multiprocessing.active_children()) == 2
    batches.close()
    batches.close()
    assert multiprocessing.active_children() == []
    assert list(half) == []


def test_batches_that_are_closed_say_so() -> None:
    batches = training(Augmented(8), num_workers=1)
    batches.close()
    with pytest.raises(RuntimeError, match="closed"):
        next(batches.epoch(0))


def test_a_short_last_batch_is_left_out_and_said() -> None:
    batches = training(in_memory(129), batch_size=64)
    assert batches.steps_per_epoch == 2
    assert [note for note in batches.notes if "leaves out the 1 of 129" in note]
    assert training(in_memory(129), batch_size=43).notes == ()


def test_a_set_smaller_than_a_batch_is_one_batch_and_said() -> None:
    batches = training(in_memory(5), batch_size=64)
    assert (batches.batch_size, batches.steps_per_epoch) == (5, 1)
    assert [note for note in batches.notes if "5 images, fewer than batch_size 64" in note]


def test_options_that_mean_nothing_without_workers_are_left_out_and_said() -> None:
    batches = training(in_memory(8), prefetch_factor=4, persistent_workers=False)
    assert len(drawn(batches.epoch(0))) == 2
    assert [note.partition(" has no meaning")[0] for note in batches.notes] == [
        "prefetch_factor 4",
        "persistent_workers False",
    ]


def test_generators_of_the_data_sets_own_are_said() -> None:
    (note,) = training(Augmented(8)).notes
    assert "3: numpy.random._generator.Generator, random.Random, torch._C.Generator" in note


def test_the_recorded_data_set_with_its_own_generator_no_longer_repeats(
    shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(shared / "cases" / "open")
    monkeypatch.setenv("BUG_PROBE", str(tmp_path / "log"))
    data = load_image_data("fixtures.data:own_rng", {}, num_classes=10)
    logs = []
    for num_workers in (0, 2):
        (tmp_path / "log").unlink(missing_ok=True)
        epochs(data.train, num_workers=num_workers)
        logs.append(sorted((tmp_path / "log").read_text().splitlines()))
    assert logs[0] == logs[1]
    assert len({line.split()[1] for line in logs[0]}) == 2 * 64


def test_a_lambda_in_a_data_set_reaches_the_workers() -> None:
    doubled = Items(8, lambda image: image * 2)
    assert same(epochs(doubled), epochs(doubled, num_workers=2))


def test_images_on_an_accelerator_are_refused_with_workers_and_pass_without() -> None:
    elsewhere = Items(8, lambda image: image.to("meta"))  # stands for any device but the CPU
    with pytest.raises(InputError, match=r"on the device meta.*set num_workers to 0"):
        training(elsewhere, num_workers=1)
    with pytest.raises(InputError, match="on the device meta"):
        EvaluationBatches(elsewhere, batch_size=4, num_workers=1, seed=0, pin_memory=False)
    images, labels = next(training(elsewhere).epoch(0))
    assert (images.device.type, labels.device.type) == ("meta", "cpu")


def test_a_wrong_item_is_told_alike_by_a_worker_and_without() -> None:
    wrong = Items(8, lambda image: image if image.sum() < 12 else image[:, :1])
    messages = []
    for num_workers in (0, 1):
        batches = training(wrong, num_workers=num_workers)
        with pytest.raises(InputError, match=r"has the shape \(1, 1, 2\)") as error:
            drawn(batches.epoch(0))
        batches.close()
        messages.append(error.value.messages)
    assert messages[0] == messages[1]


def test_what_a_data_set_raises_in_a_worker_is_raised_here() -> None:
    def fail() -> None:
        raise KeyError("no such file")

    batches = training(InAWorker(fail), num_workers=2)
    with pytest.raises(KeyError, match="no such file"):
        drawn(batches.epoch(0))
    assert multiprocessing.active_children() == []


def test_a_worker_that_is_killed_ends_the_epoch_with_an_error() -> None:
    batches = training(InAWorker(lambda: os.kill(os.getpid(), signal.SIGKILL)), num_workers=2)
    with pytest.raises(RuntimeError, match=r"exited unexpectedly|killed by signal"):
        drawn(batches.epoch(0))
    assert multiprocessing.active_children() == []


def test_workers_that_never_answer_are_given_up_and_ended() -> None:
    dataset = InAWorker(signal.pause)
    batches = TrainingBatches(
        dataset, config=replace(CONFIG, num_workers=2), seed=0, pin_memory=False, stall_seconds=0.5
    )
    with pytest.raises(LoaderStalled, match=r"data loader timed out: its 2 workers gave no batch for 0\.5 s") as error:
        drawn(batches.epoch(0))
    assert multiprocessing.active_children() == []
    assert error.value.__context__ is None
    assert len(epochs(dataset, count=1)) == 4


@pytest.mark.parametrize("num_workers", [0, 2])
def test_an_evaluation_shows_every_image_once_in_order_with_the_same_draws(num_workers: int) -> None:
    batches = EvaluationBatches(Augmented(10), batch_size=4, num_workers=num_workers, seed=0, pin_memory=False)
    here = EvaluationBatches(Augmented(10), batch_size=4, num_workers=0, seed=0, pin_memory=False)
    first, second = drawn(iter(batches)), drawn(iter(batches))
    assert batches.images == 10
    assert torch.cat([labels for _, labels in first]).tolist() == list(range(10))
    assert same(first, second)
    assert same(first, drawn(iter(here)))
    batches.close()


def test_an_evaluation_of_images_in_memory_needs_no_workers() -> None:
    batches = EvaluationBatches(in_memory(10), batch_size=4, num_workers=2, seed=0, pin_memory=False)
    assert [len(labels) for _, labels in batches] == [4, 4, 2]
    assert multiprocessing.active_children() == []
