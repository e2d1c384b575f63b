"""What an item of a data set may be."""

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import Dataset, IterableDataset, Subset
from torchvision import tv_tensors

from trainables.errors import InputError
from trainables.image_sources import ImageItems, TensorImages, as_source, checked_map_style, limited

IMAGE = torch.zeros(1, 2, 2)


class Listed(Dataset[Any]):
    def __init__(self, *items: Any) -> None:
        self.items = items

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> Any:
        return self.items[index]


class InOneGo(Listed):
    """Fetches many items at once only."""

    def __getitems__(self, indices: list[int]) -> list[Any]:
        return [self.items[index] for index in indices]


class Endless(IterableDataset[Any]):
    def __iter__(self) -> Iterator[Any]:
        return itertools.repeat((IMAGE, 0))


def batch(*items: Any) -> tuple[torch.Tensor, torch.Tensor]:
    return ImageItems(Listed(*items)).batch(torch.arange(len(items)))


@pytest.mark.parametrize("label", [3, np.int64(3), np.uint8(3), torch.tensor(3), torch.tensor([3])])
def test_a_label_is_a_whole_number_of_any_library(label: Any) -> None:
    images, labels = batch((IMAGE, label), (IMAGE, label))
    assert (labels.dtype, labels.tolist()) == (torch.int64, [3, 3])
    assert images.shape == (2, 1, 2, 2)


@pytest.mark.parametrize(
    ("image", "dtype"),
    [
        (IMAGE, torch.float32),
        (IMAGE.double(), torch.float32),
        (IMAGE.half(), torch.float32),
        (IMAGE.to(torch.uint8), torch.uint8),
    ],
)
def test_an_image_is_float32_or_uint8(image: torch.Tensor, dtype: torch.dtype) -> None:
    assert batch((image, 0))[0].dtype == dtype


@pytest.mark.parametrize(
    ("mode", "channels"), [("L", 1), ("1", 1), ("LA", 1), ("RGB", 3), ("P", 3), ("RGBA", 3), ("CMYK", 3)]
)
def test_a_pil_image_becomes_a_uint8_tensor(mode: str, channels: int) -> None:
    images, _ = batch((Image.new(mode, (4, 2)), 0))
    assert (images.dtype, images.shape) == (torch.uint8, (1, channels, 2, 4))


def test_images_of_torchvisions_own_tensor_type_become_plain_tensors() -> None:
    assert type(batch((tv_tensors.Image(IMAGE), 0))[0]) is torch.Tensor


@pytest.mark.parametrize(
    ("item", "text"),
    [
        (IMAGE, r"item 0 is a torch.float32 tensor of shape \(1, 2, 2\)"),
        ((IMAGE, 0, 1), "item 0 is a tuple of 3 values"),
        ((np.zeros((1, 2, 2)), 0), "image of item 0 is a numpy.ndarray"),
        ((IMAGE.long(), 0), "image of item 0 is a torch.int64 tensor"),
        ((IMAGE[0], 0), r"has the shape \(2, 2\)"),
        ((Image.new("I;16", (2, 2)), 0), "PIL image of mode I;16"),
        ((IMAGE, 1.0), "the label is a builtins.float"),
        ((IMAGE, "cat"), "the label is a builtins.str"),
        ((IMAGE, torch.zeros(10)), r"the label is a torch.float32 tensor of shape \(10,\)"),
    ],
)
def test_a_wrong_first_item_is_refused_at_once(item: Any, text: str) -> None:
    with pytest.raises(InputError, match=text):
        ImageItems(Listed(item))


def test_an_image_of_another_shape_is_named() -> None:
    with pytest.raises(InputError, match=r"birds: the image of item 1 has the shape \(1, 3, 2\)"):
        ImageItems(Listed((IMAGE, 0), (torch.zeros(1, 3, 2), 0)), name="birds")[1]


def test_a_label_beyond_the_classes_is_named() -> None:
    items = ImageItems(Listed((IMAGE, 0), (IMAGE, 10)), name="birds")
    items.num_classes = 10
    with pytest.raises(InputError, match="birds: item 1 has the label 10; with 10 classes a label is 0 to 9"):
        items.batch(torch.tensor([0, 1]))


def test_a_data_set_that_fetches_many_at_once_is_asked_for_many() -> None:
    items = ImageItems(InOneGo((IMAGE, 0), (IMAGE, 1), (IMAGE, 2)))
    assert items.batch(torch.tensor([2, 0]))[1].tolist() == [2, 0]


@pytest.mark.parametrize(("dataset", "text"), [(Endless(), "not a map-style"), (5, "not a map-style"), ([], "empty")])
def test_what_is_no_map_style_data_set_is_refused(dataset: object, text: str) -> None:
    with pytest.raises(InputError, match=f"birds: .*{text}"):
        checked_map_style(dataset, "birds")


def test_a_source_is_taken_as_it_is() -> None:
    images = TensorImages(torch.zeros(2, 1, 2, 2), torch.arange(2))
    assert as_source(images) is images
    assert isinstance(as_source(Listed((IMAGE, 0))), ImageItems)


def test_a_limit_takes_the_first_items() -> None:
    images = TensorImages(torch.zeros(5, 1, 2, 2), torch.arange(5))
    assert limited(images, 2).labels.tolist() == [0, 1]
    assert limited(images, 9) is limited(images, None) is images
    subset = limited(Listed((IMAGE, 7), (IMAGE, 8)), 1)
    assert isinstance(subset, Subset)
    assert [subset[index][1] for index in range(len(subset))] == [7]
