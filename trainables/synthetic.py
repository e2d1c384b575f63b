"""Random images of any shape and number: for speed alone, since nothing can be learned from them."""

import math
from collections.abc import Sequence
from functools import lru_cache

import torch
from torch import Tensor

from trainables.arguments import integer_problem, refuse
from trainables.image_data import DataParts
from trainables.image_sources import TensorImages

POOL_BYTES = 64 * 2**20
"""Of different images; a larger set repeats them."""
DATA_SETS_KEPT = 2


class RepeatedImages(TensorImages):
    """Few images in memory, shown as many: image i is number i modulo their count."""

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        return self.images[index % len(self.images)], int(self.labels[index])

    def batch(self, indices: Tensor) -> tuple[Tensor, Tensor]:
        return self.images.index_select(0, indices % len(self.images)), self.labels.index_select(0, indices)

    def first(self, limit: int) -> "RepeatedImages":
        return RepeatedImages(self.images, self.labels[:limit])


def load_synthetic(
    *,
    shape: Sequence[int] = (3, 224, 224),
    train_images: int = 10_000,
    validation_images: int = 1_000,
    num_classes: int = 10,
    seed: int = 0,
) -> DataParts:
    """uint8 images of `shape` (C, H, W) and random labels. Raises `InputError` for wrong arguments."""
    refuse(
        "dataset_args of synthetic",
        _shape_problem(shape),
        integer_problem("train_images", train_images, at_least=1),
        integer_problem("validation_images", validation_images, at_least=1),
        integer_problem("num_classes", num_classes, at_least=1),
        integer_problem("seed", seed, at_least=0),
    )
    return _drawn(tuple(shape), train_images, validation_images, num_classes, seed)


@lru_cache(maxsize=DATA_SETS_KEPT)
def _drawn(shape: tuple[int, ...], train_images: int, validation_images: int, num_classes: int, seed: int) -> DataParts:
    draws = torch.Generator().manual_seed(seed)
    pool_images = max(1, min(POOL_BYTES // math.prod(shape), max(train_images, validation_images)))
    pool = torch.randint(0, 256, (pool_images, *shape), dtype=torch.uint8, generator=draws)
    return DataParts(
        train=RepeatedImages(pool, torch.randint(0, num_classes, (train_images,), generator=draws)),
        validation=RepeatedImages(pool, torch.randint(0, num_classes, (validation_images,), generator=draws)),
        num_classes=num_classes,
        scored=False,
    )


def _shape_problem(shape: object) -> str | None:
    right = (
        isinstance(shape, (list, tuple))
        and len(shape) == 3
        and all(integer_problem("shape", size, at_least=1) is None for size in shape)
    )
    return None if right else f"shape must be three whole numbers of at least 1, [C, H, W], got {shape!r}"
