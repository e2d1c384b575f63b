"""How many classes a data set has, and whether its labels lie within them."""

from collections.abc import Sized
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import ConcatDataset, Subset, TensorDataset

from trainables.errors import InputError
from trainables.image_sources import ImageItems, TensorImages, label_out_of_range
from trainables.seeding import derived_seed, seeded_draws

Source = TensorImages | ImageItems


@runtime_checkable
class HasClasses(Protocol):
    classes: Any


@runtime_checkable
class HasTargets(Protocol):
    targets: Any


@runtime_checkable
class HasLabels(Protocol):
    labels: Any


@runtime_checkable
class HasTargetTransform(Protocol):
    target_transform: Any


def class_count(dataset: object) -> int | None:
    """The number of the data set's `classes`; None where it names none."""
    while isinstance(dataset, Subset):
        dataset = dataset.dataset
    if isinstance(dataset, HasClasses) and isinstance(dataset.classes, Sized) and len(dataset.classes):
        return len(dataset.classes)
    return None


def known_labels(source: Source) -> Tensor | None:
    """The labels (N) where they can be had without drawing every item; None where they cannot.

    `targets` or `labels` that do not agree with the first item (a wrapper may relabel) are not trusted.
    """
    if isinstance(source, TensorImages):
        return source.labels
    labels = _stored_labels(source.dataset)
    if labels is None or len(labels) != len(source) or int(labels[0]) != source.first_label:
        return None
    return labels


def drawn_labels(source: Source) -> Tensor:
    """The labels (N) of every item drawn: it takes as long as an epoch of loading."""
    owned = source.owned
    with seeded_draws(derived_seed("labels"), owned):
        return torch.tensor([source[index][1] for index in range(len(source))])


def refuse_labels_out_of_range(name: str, labels: Tensor, num_classes: int) -> None:
    """Raises `InputError` naming the first label that is not from 0 to `num_classes` − 1."""
    wrong = ((labels < 0) | (labels >= num_classes)).nonzero().flatten()
    if len(wrong):
        first = int(wrong[0])
        raise InputError(label_out_of_range(name, first, int(labels[first]), num_classes))


def _stored_labels(dataset: object) -> Tensor | None:
    match dataset:
        case Subset():
            whole = _stored_labels(dataset.dataset)
            return None if whole is None else whole[torch.as_tensor(list(dataset.indices))]
        case ConcatDataset():
            parts = [_stored_labels(part) for part in dataset.datasets]
            every = [part for part in parts if part is not None]
            return torch.cat(every) if len(every) == len(parts) else None
        case TensorDataset():
            return _as_labels(dataset.tensors[-1])
        case HasTargetTransform() if dataset.target_transform is not None:
            return None
        case HasTargets():
            return _as_labels(dataset.targets)
        case HasLabels():
            return _as_labels(dataset.labels)
        case _:
            return None


def _as_labels(stored: Any) -> Tensor | None:
    """One whole number an item, as an int64 tensor; None for anything else, such as names or one-hot rows."""
    if isinstance(stored, Tensor):
        stored = stored.numpy(force=True)
    try:
        array = np.asarray(stored)
    except ValueError:  # rows of different lengths
        return None
    if array.ndim != 1 or array.dtype.kind not in "iu" or not len(array):
        return None
    return torch.from_numpy(array.astype(np.int64))
