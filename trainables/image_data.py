"""A data set's parts as its kind delivers them, and made ready for a trial."""

from dataclasses import dataclass
from typing import Any

from torch.utils.data import Dataset


@dataclass(frozen=True, slots=True, kw_only=True)
class DataParts:
    """What a kind of data set delivers, before limits and checks: map-style data sets of (image, label)."""

    train: Any
    validation: Any
    test: Any = None
    num_classes: int | None = None
    """None: to be found from `classes` or the labels."""
    independent_validation_images: int | None = None
    """Where validation images are grown from fewer source images, in whose order they come: how many those are."""
    scored: bool = True
    """Whether an accuracy means anything; on random images it does not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageData:
    """Map-style data sets whose items are (image, label): a float32 or uint8 tensor (C, H, W), and an int."""

    train: Dataset[Any]
    validation: Dataset[Any]
    test: Dataset[Any] | None = None
    num_classes: int
    input_shape: tuple[int, int, int]
    """(C, H, W)"""
    independent_validation_images: int | None = None
    """Where validation images were grown from fewer source images: how many those are."""
    scored: bool = True
    """Whether an accuracy means anything; on random images it does not."""
    notes: tuple[str, ...] = ()
    """Sentences for the outcome."""
