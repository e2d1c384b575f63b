"""How a batch gets into the training process: made in it, or by worker processes of torch's DataLoader."""

from collections.abc import Generator, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from trainables.errors import InputError
from trainables.image_sources import ImageSource
from trainables.seeding import derived_seed, seeded_draws

START_METHOD = "fork"
"""Of loader workers: it starts in hundredths of a second, and data sets need not be picklable (lambda transforms)."""

Batch = tuple[Tensor, Tensor]
"""Images (N, C, H, W), float32 or uint8, and labels (N), int64."""


class LoaderStalled(RuntimeError):  # noqa: N818  # it reads as what happened
    """Loader workers gave no batch for the longest time allowed; they have been ended."""


class BatchRequest(NamedTuple):
    """What a batch is made from; small, for it goes to a worker process."""

    epoch: int
    batch: int
    indices: Tensor | np.ndarray[Any, np.dtype[np.int64]]
    """An array while it crosses to a worker: it is small when pickled; a tensor would take shared memory."""


def batch_requests(order: Tensor, batch_size: int, *, epoch: int, start_batch: int) -> Iterator[BatchRequest]:
    for start in range(start_batch * batch_size, len(order), batch_size):
        yield BatchRequest(epoch, start // batch_size, order[start : start + batch_size])


class BatchFetcher(Dataset[Batch]):
    """Makes the batch of a request, in the training process or in a worker."""

    def __init__(self, source: ImageSource, *, seed: int, purpose: str) -> None:
        self.source = source
        self.seed = seed
        self.purpose = purpose

    def fetch(self, request: BatchRequest) -> Batch:
        indices = torch.as_tensor(request.indices)
        if not self.source.draws:
            return self.source.batch(indices)
        seed = derived_seed(self.seed, self.purpose, request.epoch, request.batch)
        with seeded_draws(seed, self.source.owned):
            return self.source.batch(indices)

    def __getitems__(self, request: BatchRequest) -> Batch | InputError:
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
        self.requests: Iterator[BatchRequest] = iter(())

    def __iter__(self) -> Iterator[Any]:
        for request in self.requests:
            yield request._replace(indices=np.asarray(request.indices))


class BatchCarrier:
    """Brings batches to the training process: made in it, or by loader workers."""

    def __init__(
        self,
        fetcher: BatchFetcher,
        *,
        num_workers: int,
        pin_memory: bool,
        persistent_workers: bool,
        prefetch_factor: int | None,
        stall_seconds: float,
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
        self._stall_seconds = stall_seconds
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
                timeout=stall_seconds,
                generator=torch.Generator(),  # else starting the workers draws from the training's
            )

    def batches(self, requests: Iterator[BatchRequest]) -> Iterator[Batch]:
        if self._running is not None:
            self._running.close()
        self._running = self._from_workers(requests) if self._num_workers else self._made_here(requests)
        return self._running

    def close(self) -> None:
        if self._running is not None:
            self._running.close()
        self._running = None
        self._loader = None  # the last reference: its workers end

    def _made_here(self, requests: Iterator[BatchRequest]) -> Generator[Batch, None, None]:
        for request in requests:
            yield self._fetch(request)  # not kept here, so that the next batch may take the same memory

    def _fetch(self, request: BatchRequest) -> Batch:
        images, labels = self._fetcher.fetch(request)
        return (images.pin_memory(), labels.pin_memory()) if self._pin_memory else (images, labels)

    def _from_workers(self, requests: Iterator[BatchRequest]) -> Generator[Batch, None, None]:
        if self._loader is None:
            raise RuntimeError("these batches are closed")
        self._sampler.requests = requests
        arriving = iter(self._loader)
        while True:
            try:
                batch = next(arriving, None)
            except Exception as error:  # noqa: BLE001  # whatever it is, it is raised again, after the workers' end
                failure = self._without_frames(error)
                break
            if batch is None:
                return
            if isinstance(batch, InputError):
                failure = batch
                break
            images, labels = batch
            yield images, labels
        del arriving  # with the loader the workers end: now, not when the last reference to the error is gone
        self._loader = None
        raise failure

    def _without_frames(self, error: Exception) -> Exception:
        """The error with nothing that refers to the loader; what happened in a worker is told in its text."""
        if str(error).startswith("DataLoader timed out"):
            return LoaderStalled(
                f"the data loader timed out: its {self._num_workers} workers gave no batch for "
                f"{self._stall_seconds:g} s; look at what the data set waits for (a lock, a network, a device), or "
                f"set num_workers to 0"
            )
        error.__cause__ = error.__context__ = None
        return error.with_traceback(None)


def _unchanged(batch: Any) -> Any:
    return batch
