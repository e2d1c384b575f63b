"""Batches: the same ones in the same order, augmented the same way, whatever `num_workers` is.

The order of an epoch follows from (seed, epoch), and whatever a batch draws at random from (seed, epoch, batch): never
from which process draws it, nor from what was drawn before. So a training can go on from the middle of an epoch.
"""

from collections.abc import Generator, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from trainables.errors import InputError
from trainables.image_sources import ImageSource, as_source
from trainables.seeding import derived_seed, seeded_draws
from trainables.specs import TrainingConfig, further_knobs

START_METHOD = "fork"
"""Of loader workers: it starts in hundredths of a second, and data sets need not be picklable (lambda transforms)."""
STALL_SECONDS = 600
"""A loader whose workers give no batch for so long is given up."""
WORKER_KNOBS = ("prefetch_factor", "persistent_workers")

Batch = tuple[Tensor, Tensor]
"""Images (N, C, H, W), float32 or uint8, and labels (N), int64."""


class TrainingBatches:
    """A training set in batches of one size: an epoch's last batch, if it is short, is left out."""

    def __init__(self, dataset: Dataset[Any], *, config: TrainingConfig, seed: int, pin_memory: bool) -> None:
        """Raises `InputError` where images come out on an accelerator and workers were asked for."""
        source = as_source(dataset)
        images = len(source)
        self.batch_size = min(config.batch_size, images)
        """Images in every batch."""
        self.steps_per_epoch = images // self.batch_size
        self.notes = (*_batch_notes(images, config), *_worker_notes(config), *_generator_notes(source))
        """What is done otherwise than asked."""
        self._seed = seed
        self._images = images
        self._carrier = _Carrier(
            _Fetcher(source, seed=seed, purpose="training"),
            num_workers=config.num_workers,
            pin_memory=pin_memory,
            persistent_workers=config.persistent_workers,
            prefetch_factor=config.prefetch_factor,
        )

    def epoch(self, epoch: int, start_batch: int = 0) -> Iterator[Batch]:
        """The batches of an epoch (counted from 0) from `start_batch` on; those before it are not loaded.

        An epoch that was begun earlier and not drawn to its end is given up.
        """
        shuffled = torch.Generator().manual_seed(derived_seed(self._seed, "order", epoch))
        order = torch.randperm(self._images, generator=shuffled)
        used = order[: self.steps_per_epoch * self.batch_size]
        return self._carrier.batches(_requests(used, self.batch_size, epoch=epoch, start_batch=start_batch))

    def close(self) -> None:
        """Ends the worker processes. Harmless when repeated."""
        self._carrier.close()


class EvaluationBatches:
    """A data set in its own order, every image once; the last batch may be short."""

    def __init__(
        self, dataset: Dataset[Any], *, batch_size: int, num_workers: int, seed: int, pin_memory: bool
    ) -> None:
        """Raises `InputError` where images come out on an accelerator and workers were asked for."""
        source = as_source(dataset)
        self.images = len(source)
        self._batch_size = batch_size
        self._carrier = _Carrier(
            _Fetcher(source, seed=seed, purpose="validation"),
            num_workers=num_workers if source.draws else 0,  # selecting from memory is faster than any worker
            pin_memory=pin_memory,
            persistent_workers=False,  # between evaluations they would idle beside the training's
            prefetch_factor=None,
        )

    def __iter__(self) -> Iterator[Batch]:
        return self._carrier.batches(_requests(torch.arange(self.images), self._batch_size, epoch=0, start_batch=0))

    def close(self) -> None:
        """Ends the worker processes. Harmless when repeated."""
        self._carrier.close()


class _Request(NamedTuple):
    """What a batch is made from; small, for it goes to a worker process."""

    epoch: int
    batch: int
    indices: Tensor | np.ndarray[Any, np.dtype[np.int64]]
    """An array while it crosses to a worker: it is small when pickled; a tensor would take shared memory."""


def _requests(order: Tensor, batch_size: int, *, epoch: int, start_batch: int) -> Iterator[_Request]:
    for start in range(start_batch * batch_size, len(order), batch_size):
        yield _Request(epoch, start // batch_size, order[start : start + batch_size])


class _Fetcher(Dataset[Batch]):
    """Makes the batch of a request, in the training process or in a worker."""

    def __init__(self, source: ImageSource, *, seed: int, purpose: str) -> None:
        self.source = source
        self.seed = seed
        self.purpose = purpose

    def fetch(self, request: _Request) -> Batch:
        indices = torch.as_tensor(request.indices)
        if not self.source.draws:
            return self.source.batch(indices)
        seed = derived_seed(self.seed, self.purpose, request.epoch, request.batch)
        with seeded_draws(seed, self.source.owned):
            return self.source.batch(indices)

    def __getitems__(self, request: _Request) -> Batch | InputError:
        """The door that DataLoader fetches a batch through: it hands on whatever its batch sampler gave.

        An `InputError` is carried back as a value; torch would wrap it in a traceback of the worker.
        """
        try:
            return self.fetch(request)
        except InputError as error:
            return error


class _Sampler:
    """The requests of the epoch in hand, as DataLoader draws them."""

    def __init__(self) -> None:
        self.requests: Iterator[_Request] = iter(())

    def __iter__(self) -> Iterator[Any]:
        for request in self.requests:
            yield request._replace(indices=np.asarray(request.indices))


class _Carrier:
    """Brings batches to the training process: made in it, or by loader workers."""

    def __init__(
        self,
        fetcher: _Fetcher,
        *,
        num_workers: int,
        pin_memory: bool,
        persistent_workers: bool,
        prefetch_factor: int | None,
    ) -> None:
        self._fetcher = fetcher
        on_host = fetcher.source.device.type == "cpu"
        if num_workers and not on_host:
            raise InputError(
                f"data set: its images are on the device {fetcher.source.device}; what loader workers make must be "
                f"on the CPU; return CPU tensors (the training moves them), or set num_workers to 0"
            )
        self._pin_memory = pin_memory and on_host
        self._sampler = _Sampler()
        self._running: Generator[Batch, None, None] | None = None
        self._num_workers = num_workers
        self._loader: DataLoader[Any] | None = None
        if num_workers:
            self._loader = DataLoader(
                fetcher,
                batch_sampler=self._sampler,
                num_workers=num_workers,
                collate_fn=_unchanged,
                pin_memory=self._pin_memory,
                persistent_workers=persistent_workers,
                prefetch_factor=prefetch_factor,
                multiprocessing_context=START_METHOD,
                timeout=STALL_SECONDS,
                generator=torch.Generator(),  # else starting the workers draws from the training's
            )

    def batches(self, requests: Iterator[_Request]) -> Iterator[Batch]:
        if self._running is not None:
            self._running.close()
        self._running = self._from_workers(requests) if self._num_workers else self._made_here(requests)
        return self._running

    def close(self) -> None:
        if self._running is not None:
            self._running.close()
        self._running = None
        self._loader = None  # the last reference: its workers end

    def _made_here(self, requests: Iterator[_Request]) -> Generator[Batch, None, None]:
        for request in requests:
            images, labels = self._fetcher.fetch(request)
            yield (images.pin_memory(), labels.pin_memory()) if self._pin_memory else (images, labels)

    def _from_workers(self, requests: Iterator[_Request]) -> Generator[Batch, None, None]:
        if self._loader is None:
            raise RuntimeError("these batches are closed")
        self._sampler.requests = requests
        for batch in self._loader:
            if isinstance(batch, InputError):
                raise batch
            images, labels = batch
            yield images, labels


def _unchanged(batch: Any) -> Any:
    return batch


def _batch_notes(images: int, config: TrainingConfig) -> Iterator[str]:
    if images < config.batch_size:
        yield (
            f"the training set has {images} images, fewer than batch_size {config.batch_size}: "
            f"every batch holds all {images}"
        )
    elif left_out := images % config.batch_size:
        yield (
            f"each epoch leaves out the {left_out} of {images} training images that fill no batch of "
            f"{config.batch_size}, other ones in each epoch"
        )


def _worker_notes(config: TrainingConfig) -> Iterator[str]:
    if config.num_workers == 0:
        for name, value in further_knobs(config).items():
            if name in WORKER_KNOBS:
                yield f"{name} {value} has no meaning at num_workers 0 and was left out"


def _generator_notes(source: ImageSource) -> Iterator[str]:
    if source.owned:
        kinds = sorted({f"{type(owned).__module__}.{type(owned).__name__}" for owned in source.owned})
        yield (
            f"the data set keeps random generators of its own ({len(source.owned)}: {', '.join(kinds)}): they are "
            f"seeded anew for every batch, so that its draws neither repeat in every worker nor depend on num_workers"
        )
