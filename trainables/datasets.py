"""A data set's name, or an entry, into `ImageData`."""

import difflib
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from trainables.arguments import call_with_arguments, integer_problem, refuse
from trainables.digits import load_digits_8x8
from trainables.errors import InputError
from trainables.image_data import ImageData
from trainables.image_sources import limited
from trainables.model_names import dataset_names

__all__ = ["ImageData", "load_image_data"]

LIMITS = ("train_limit", "validation_limit")

BUILT_IN: Mapping[str, Callable[..., ImageData]] = {
    "digits": load_digits_8x8,
}


def load_image_data(name: str, args: Mapping[str, Any], *, num_classes: int | None) -> ImageData:
    """The data set `name` with `dataset_args`; `num_classes` None means the data set's own.

    Raises `InputError` where there is no such data set, an argument is wrong, or its files are not there.
    """
    where = f"dataset {name}"
    limits = {limit: args.get(limit) for limit in LIMITS}
    refuse(where, *(integer_problem(k, v, at_least=1) for k, v in limits.items() if v is not None))
    own_args = {key: value for key, value in args.items() if key not in LIMITS}
    if name not in BUILT_IN:
        near = difflib.get_close_matches(name, dataset_names(), n=1)
        raise InputError(f"{where}: there is no such data set" + (f"; did you mean {near[0]}?" if near else ""))
    data: ImageData = call_with_arguments(BUILT_IN[name], own_args, where=f"dataset_args of {name}")
    return replace(
        data,
        train=limited(data.train, limits["train_limit"]),
        validation=limited(data.validation, limits["validation_limit"]),
        num_classes=num_classes or data.num_classes,
    )
