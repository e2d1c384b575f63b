"""A data set's name, or an entry, into `ImageData`: loaded, limited, checked."""

import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from trainables.arguments import call_with_arguments, integer_problem, refuse
from trainables.dataset_table import TORCHVISION_SETS
from trainables.digits import load_digits
from trainables.digits28 import load_digits28
from trainables.entries import is_entry
from trainables.errors import InputError
from trainables.image_data import DataParts, ImageData
from trainables.image_folder import load_image_folder
from trainables.image_sources import ImageItems, TensorImages, checked_map_style, limited
from trainables.labels import Source, class_count, drawn_labels, known_labels, refuse_labels_out_of_range
from trainables.model_names import dataset_names
from trainables.synthetic import load_synthetic
from trainables.torchvision_datasets import load_torchvision
from trainables.user_data import load_user_data

__all__ = ["ImageData", "load_image_data"]

LIMITS = ("train_limit", "validation_limit")
"""`dataset_args` that every data set takes: only its first so many images are used."""
DRAWN_NOTE = (
    "every item was drawn once to find the number of classes; num_classes in the space, or `classes` or `targets` on "
    "the data set, would save that"
)
PARTS = ("training", "validation", "test")

BUILT_IN: Mapping[str, Callable[..., DataParts]] = {
    "digits": load_digits,
    "digits28": load_digits28,
    "synthetic": load_synthetic,
    "image_folder": load_image_folder,
}


def load_image_data(name: str, args: Mapping[str, Any], *, num_classes: int | None) -> ImageData:
    """The data set `name` with `dataset_args`; `num_classes` None means the data set's own.

    Raises `InputError` where there is no such data set, an argument is wrong, its files are not there, or its items are
    not what they must be; what a user's own code raises goes through.
    """
    limits = {limit: args.get(limit) for limit in LIMITS}
    refuse(
        f"dataset_args of {name}",
        *(integer_problem(key, value, at_least=1) for key, value in limits.items() if value is not None),
    )
    parts = _parts(name, {key: value for key, value in args.items() if key not in LIMITS})
    return _ready(name, parts, limits["train_limit"], limits["validation_limit"], num_classes)


def _parts(name: str, args: Mapping[str, Any]) -> DataParts:
    if is_entry(name):
        return load_user_data(name, args)
    parts: DataParts = call_with_arguments(_loader(name), args, where=f"dataset_args of {name}", taken_elsewhere=LIMITS)
    return parts


def _loader(name: str) -> Callable[..., DataParts]:
    if name in BUILT_IN:
        return BUILT_IN[name]
    if name in TORCHVISION_SETS:
        return partial(load_torchvision, name)
    near = difflib.get_close_matches(name, dataset_names(), n=1)
    hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(dataset_names())}"
    raise InputError(
        f"dataset {name}: there is no such data set; {hint}; data sets of your own are written package.module:callable"
    )


def _ready(
    name: str, parts: DataParts, train_limit: int | None, validation_limit: int | None, num_classes: int | None
) -> ImageData:
    train = _source(f"dataset {name}: training set", parts.train, train_limit)
    validation = _source(f"dataset {name}: validation set", parts.validation, validation_limit)
    test = None if parts.test is None else _source(f"dataset {name}: test set", parts.test, None)
    sources = [source for source in (train, validation, test) if source is not None]
    count, notes = _class_count(parts, num_classes, sources)
    _refuse_other_shapes(name, sources)
    _hold_to_classes(name, sources, count)
    return ImageData(
        train=train,
        validation=validation,
        test=test,
        num_classes=count,
        input_shape=_three(train.image_shape),
        independent_validation_images=_at_most(parts.independent_validation_images, validation_limit),
        scored=parts.scored,
        notes=(*notes, *_limit_notes(parts, train_limit, validation_limit)),
    )


def _source(name: str, part: object, limit: int | None) -> Source:
    dataset = limited(checked_map_style(part, name), limit)
    return dataset if isinstance(dataset, TensorImages) else ImageItems(dataset, name=name)


def _class_count(parts: DataParts, asked: int | None, sources: Sequence[Source]) -> tuple[int, tuple[str, ...]]:
    """As asked, else the data set's own, else its `classes`, else from its labels; and a note where that took long."""
    count = asked or parts.num_classes or class_count(parts.train)
    if count is not None:
        return count, ()
    known = [known_labels(source) for source in sources]
    labels = [drawn_labels(source) if have is None else have for source, have in zip(sources, known, strict=True)]
    notes = (DRAWN_NOTE,) if any(have is None for have in known) else ()
    return max(int(part.max()) for part in labels) + 1, notes


def _refuse_other_shapes(name: str, sources: Sequence[Source]) -> None:
    shapes = [source.image_shape for source in sources]
    if len(set(shapes)) > 1:
        told = ", ".join(f"{part} {shape}" for part, shape in zip(PARTS, shapes, strict=False))
        raise InputError(
            f"dataset {name}: the first images of its parts differ in shape: {told}; they must be the same"
        )


def _hold_to_classes(name: str, sources: Sequence[Source], num_classes: int) -> None:
    for part, source in zip(PARTS, sources, strict=False):
        labels = known_labels(source)
        if labels is not None:
            refuse_labels_out_of_range(f"dataset {name}: {part} set", labels, num_classes)
        if isinstance(source, ImageItems):
            source.num_classes = num_classes


def _limit_notes(parts: DataParts, train_limit: int | None, validation_limit: int | None) -> Iterator[str]:
    for key, limit, part in (
        ("train_limit", train_limit, parts.train),
        ("validation_limit", validation_limit, parts.validation),
    ):
        if limit is not None and limit > len(part):
            yield f"{key} {limit} is more than the {len(part)} images there are: all of them are used"


def _at_most(images: int | None, limit: int | None) -> int | None:
    return images if images is None or limit is None else min(images, limit)


def _three(shape: tuple[int, ...]) -> tuple[int, int, int]:
    channels, height, width = shape
    return channels, height, width
