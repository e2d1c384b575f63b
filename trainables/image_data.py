"""A data set made ready for a trial: its parts, and what a model and a report need to know of it."""

from dataclasses import dataclass
from typing import Any

from torch.utils.data import Dataset


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
