"""70,000 images of 28×28 pixels grown from scikit-learn's digits: FashionMNIST's shape and size with no download.

Every source digit is turned, scaled, sheared and shifted at random and overlaid with noise, some 40 times in training
and 28 times in validation. Training and validation have different source digits, so that no validation image resembles
its own source; an accuracy carries the sampling error of the 360 source digits, not of 10,000 images.
"""

from functools import cache
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional

from trainables.digits import NUM_CLASSES, VALIDATION_IMAGES, source_digits
from trainables.image_data import DataParts
from trainables.image_sources import TensorImages
from trainables.node_cache import made_once

TRAIN_IMAGES = 60_000
GROWN_VALIDATION_IMAGES = 10_000
SIZE = 28
VERSION = 1
"""Raised when the images change: another file in the node's cache."""

LARGEST_TURN = 0.35
"""Radians, to either side."""
LARGEST_SCALING = 0.25
LARGEST_SHEAR = 0.3
LARGEST_SHIFT = 0.15
"""Of half the image, to either side."""
DIGIT_SHARE = 20 / 28
"""Of the image's side that a digit takes up before it is scaled, as in MNIST."""
NOISE = 0.15
"""Standard deviation; pixels go from 0 to 1."""
CHUNK_IMAGES = 4_096
TRAIN_SEED, VALIDATION_SEED = 1, 2


@cache
def load_digits28() -> DataParts:
    """60,000 training and 10,000 validation images (1, 28, 28), uint8; made once per node, in seconds."""
    stored = torch.load(made_once(f"digits28-v{VERSION}.pt", _make), weights_only=True)
    return DataParts(
        train=TensorImages(stored["train_images"], stored["train_labels"]),
        validation=TensorImages(stored["validation_images"], stored["validation_labels"]),
        num_classes=NUM_CLASSES,
        independent_validation_images=VALIDATION_IMAGES,
    )


def grown(images: Tensor, labels: Tensor, count: int, *, seed: int) -> tuple[Tensor, Tensor]:
    """`count` images (count, 1, 28, 28), uint8, and their labels, grown from source images (N, 1, 8, 8) of 0 to 1, each
    taken in turn.
    """
    draws = torch.Generator().manual_seed(seed)
    sources = torch.arange(count) % len(labels)
    chunks = [_grown_chunk(images[chunk], draws) for chunk in torch.split(sources, CHUNK_IMAGES)]
    return torch.cat(chunks), labels[sources]


def _grown_chunk(images: Tensor, draws: torch.Generator) -> Tensor:
    shape = [len(images), 1, SIZE, SIZE]
    grid = functional.affine_grid(_random_maps(len(images), draws), shape, align_corners=False)
    # the sources are 8 pixels wide: bicubic, for bilinear interpolation would show their squares
    moved = functional.grid_sample(images, grid, mode="bicubic", padding_mode="zeros", align_corners=False)
    noisy = moved + NOISE * torch.randn(shape, generator=draws)
    return (noisy.clamp(0, 1) * 255).round().to(torch.uint8)


def _random_maps(count: int, draws: torch.Generator) -> Tensor:
    """(count, 2, 3): from places in the image to places in the source, both from −1 to 1."""

    def to_either_side(largest: float) -> Tensor:
        return (2 * torch.rand(count, generator=draws) - 1) * largest

    turn, shear = to_either_side(LARGEST_TURN), to_either_side(LARGEST_SHEAR)
    scale = 1 / (DIGIT_SHARE * (1 + to_either_side(LARGEST_SCALING)))
    maps = torch.empty(count, 2, 3)
    maps[:, 0, 0], maps[:, 0, 1] = scale * turn.cos(), scale * (shear - turn.sin())
    maps[:, 1, 0], maps[:, 1, 1] = scale * turn.sin(), scale * turn.cos()
    maps[:, 0, 2], maps[:, 1, 2] = scale * to_either_side(LARGEST_SHIFT), scale * to_either_side(LARGEST_SHIFT)
    return maps


def _make(path: Path) -> None:
    train, validation = source_digits()
    train_images, train_labels = grown(*train, TRAIN_IMAGES, seed=TRAIN_SEED)
    validation_images, validation_labels = grown(*validation, GROWN_VALIDATION_IMAGES, seed=VALIDATION_SEED)
    torch.save(
        {
            "train_images": train_images,
            "train_labels": train_labels,
            "validation_images": validation_images,
            "validation_labels": validation_labels,
        },
        path,
    )
