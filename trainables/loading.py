"""Batches: the same ones in the same order, augmented the same way, whatever `num_workers` is.

The order of an epoch follows from (seed, epoch), and whatever a batch draws at random from (seed, epoch, batch): never
from which process draws it, nor from what was drawn before. So a training can go on from the middle of an epoch.
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import Dataset

from trainables.batch_carrier import Batch, BatchCarrier, BatchFetcher, LoaderStalled, batch_requests
from trainables.image_sources import ImageSource, as_source
from trainables.seeding import derived_seed
from trainables.specs import TrainingConfig, further_knobs

__all__ = ["Batch", "EvaluationBatches", "LoaderStalled", "TrainingBatches"]

STALL_SECONDS = 600
"""A loader whose workers give no batch for so long is given up."""
WORKER_KNOBS = ("prefetch_factor", "persistent_workers")


class TrainingBatches:
    """A training set in batches of one size: an epoch's last batch, if it is short, is left out."""

    def __init__(
        self,
        dataset: Dataset[Any],
        *,
        config: TrainingConfig,
        seed: int,
        pin_memory: bool,
        stall_seconds: float = STALL_SECONDS,
    ) -> None:
        """Raises `InputError` where images come out on an accelerator and workers were asked for."""
        source = as_source(dataset)
        images = len(source)
        self.batch_size = min(config.batch_size, images)
        """Images in every batch."""
        self.steps_per_epoch = images // self.batch_size
        self.bunch = max(1, config.num_workers)
        """Batches that arrive together where the loader is slow: one from each worker."""
        self.notes = (*_batch_notes(images, config), *_worker_notes(config), *_generator_notes(source))
        """What is done otherwise than asked."""
        self._seed = seed
        self._images = images
        self._carrier = BatchCarrier(
            BatchFetcher(source, seed=seed, purpose="training"),
            num_workers=config.num_workers,
            pin_memory=pin_memory,
            persistent_workers=config.persistent_workers,
            prefetch_factor=config.prefetch_factor,
            stall_seconds=stall_seconds,
        )

    def epoch(self, epoch: int, start_batch: int = 0) -> Iterator[Batch]:
        """The batches of an epoch (counted from 0) from `start_batch` on; those before it are not loaded.

        An epoch that was begun earlier and not drawn to its end is given up.
        """
        return self._carrier.batches(
            batch_requests(self._order(epoch), self.batch_size, epoch=epoch, start_batch=start_batch)
        )

    def indices(self, epoch: int, batch: int) -> Tensor:
        """Which images of the training set a batch is made of."""
        return self._order(epoch)[batch * self.batch_size :][: self.batch_size]

    def close(self) -> None:
        """Ends the worker processes. Harmless when repeated."""
        self._carrier.close()

    def _order(self, epoch: int) -> Tensor:
        shuffled = torch.Generator().manual_seed(derived_seed(self._seed, "order", epoch))
        order = torch.randperm(self._images, generator=shuffled)
        return order[: self.steps_per_epoch * self.batch_size]


class EvaluationBatches:
    """A data set in its own order, every image once; the last batch may be short."""

    def __init__(
        self, dataset: Dataset[Any], *, batch_size: int, num_workers: int, seed: int, pin_memory: bool
    ) -> None:
        """Raises `InputError` where images come out on an accelerator and workers were asked for."""
        source = as_source(dataset)
        self.images = len(source)
        self._batch_size = batch_size
        self._carrier = BatchCarrier(
            BatchFetcher(source, seed=seed, purpose="validation"),
            num_workers=num_workers if source.draws else 0,  # selecting from memory is faster than any worker
            pin_memory=pin_memory,
            persistent_workers=False,  # between evaluations they would idle beside the training's
            prefetch_factor=None,
            stall_seconds=STALL_SECONDS,
        )

    def __iter__(self) -> Iterator[Batch]:
        return self._carrier.batches(
            batch_requests(torch.arange(self.images), self._batch_size, epoch=0, start_batch=0)
        )

    def close(self) -> None:
        """Ends the worker processes. Harmless when repeated."""
        self._carrier.close()


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
