"""scikit-learn's 1,797 handwritten digits of 8×8 pixels: the data set that is always there."""

from functools import cache

import numpy as np
import torch
from sklearn.datasets import load_digits as load_digits_of_sklearn
from torch import Tensor

from trainables.image_data import DataParts
from trainables.image_sources import TensorImages

TRAIN_IMAGES = 1_437
VALIDATION_IMAGES = 360
NUM_CLASSES = 10
LARGEST_VALUE = 16.0
"""Of a pixel in scikit-learn's data."""
SPLIT_SEED = 0


@cache
def load_digits() -> DataParts:
    """1,437 training and 360 validation images (1, 8, 8), float32, standardised by the training images' own mean and
    standard deviation.
    """
    (train_images, train_labels), (validation_images, validation_labels) = source_digits()
    mean, std = train_images.mean(), train_images.std()
    return DataParts(
        train=TensorImages((train_images - mean) / std, train_labels),
        validation=TensorImages((validation_images - mean) / std, validation_labels),
        num_classes=NUM_CLASSES,
    )


def source_digits() -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """The fixed split: training and validation images (N, 1, 8, 8), float32 from 0 to 1, each with labels (N)."""
    bunch = load_digits_of_sklearn()
    images = torch.from_numpy(bunch.images.astype(np.float32) / LARGEST_VALUE).unsqueeze(1)
    labels = torch.from_numpy(bunch.target.astype(np.int64))
    # numpy promises that RandomState's draws never change; torch promises nothing between versions
    order = torch.from_numpy(np.random.RandomState(SPLIT_SEED).permutation(len(labels)))
    train, validation = order[:TRAIN_IMAGES], order[TRAIN_IMAGES:]
    return (images[train], labels[train]), (images[validation], labels[validation])
