"""Random images for speed alone."""

from typing import Any

import pytest
import torch

from trainables.datasets import load_image_data
from trainables.errors import InputError
from trainables.image_sources import TensorImages
from trainables.synthetic import POOL_BYTES, RepeatedImages

ARGS = {"shape": [3, 8, 6], "train_images": 20, "validation_images": 5, "num_classes": 4}


def test_synthetic_images_are_of_any_shape_and_number_and_unscored() -> None:
    data = load_image_data("synthetic", ARGS, num_classes=None)
    assert isinstance(data.train, TensorImages)
    assert (len(data.train), data.input_shape, data.num_classes) == (20, (3, 8, 6), 4)
    assert data.train.images.dtype == torch.uint8
    assert not data.scored


def test_synthetic_images_follow_from_the_seed() -> None:
    first, again, other = (
        load_image_data("synthetic", {**ARGS, "seed": seed}, num_classes=None).train[0][0] for seed in (0, 0, 1)
    )
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_a_large_set_repeats_a_few_images_and_takes_little_memory() -> None:
    data = load_image_data("synthetic", {"shape": [3, 512, 512], "train_images": 10**6}, num_classes=None)
    assert isinstance(data.train, RepeatedImages)
    assert len(data.train) == 10**6
    assert data.train.images.numel() <= POOL_BYTES
    count = len(data.train.images)
    images, labels = data.train.batch(torch.tensor([0, count, 10**6 - 1]))
    assert torch.equal(images[0], images[1])
    assert torch.equal(images[2], data.train[10**6 - 1][0])
    assert len(labels) == 3


def test_a_limit_keeps_the_first_images_of_a_repeated_set() -> None:
    data = load_image_data("synthetic", {**ARGS, "train_limit": 7}, num_classes=None)
    assert isinstance(data.train, RepeatedImages)
    assert len(data.train) == 7


@pytest.mark.parametrize(
    ("args", "texts"),
    [
        ({"shape": [3, 8]}, ["shape must be three whole numbers of at least 1, [C, H, W], got [3, 8]"]),
        ({"shape": "3x8x8"}, ["shape must be three"]),
        ({"train_images": 0, "num_classes": "ten"}, ["train_images must be at least 1", "num_classes must be a whole"]),
        ({"images": 3}, ["no argument images"]),
    ],
)
def test_every_wrong_argument_is_told(args: dict[str, Any], texts: list[str]) -> None:
    with pytest.raises(InputError) as error:
        load_image_data("synthetic", args, num_classes=None)
    assert len(error.value.messages) == len(texts)
    for message, text in zip(error.value.messages, texts, strict=True):
        assert text in message
