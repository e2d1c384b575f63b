"""Data sets of the user's own: an entry `package.module:callable` that returns (train, validation[, test])."""

from collections.abc import Mapping
from typing import Any

from trainables.arguments import call_with_arguments
from trainables.entries import load_entry
from trainables.errors import InputError
from trainables.image_data import DataParts


def load_user_data(name: str, args: Mapping[str, Any]) -> DataParts:
    """Raises `InputError` where the entry is not there or returns something else; what it raises goes through."""
    returned = call_with_arguments(load_entry(name), args, where=f"dataset_args of {name}")
    if not isinstance(returned, (tuple, list)) or len(returned) not in (2, 3):
        what = f"{len(returned)} values" if isinstance(returned, (tuple, list)) else f"a {type(returned).__name__}"
        raise InputError(
            f"dataset {name}: it returned {what}; it must return (train, validation) or (train, validation, test)"
        )
    train, validation, *rest = returned
    return DataParts(train=train, validation=validation, test=rest[0] if rest else None)
