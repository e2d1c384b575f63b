"""Where batches of images come from: tensors in memory, or a data set's items drawn one by one and checked."""

import operator
from collections.abc import Sequence
from typing import Any, Protocol, cast, runtime_checkable

import torch
from PIL import Image
from torch import Tensor
from torch.utils.data import Dataset, Subset, default_collate
from torchvision.transforms.v2.functional import pil_to_tensor

from trainables.errors import InputError
from trainables.owned_generators import owned_generators
from trainables.seeding import Generator, derived_seed, seeded_draws

ALLOWED_ITEM = "an item is (image, label): a float or uint8 tensor of one shape (C, H, W) or a PIL image, and an int"


@runtime_checkable
class ImageSource(Protocol):
    """What a loader draws batches from."""

    image_shape: tuple[int, ...]
    """(C, H, W)"""
    device: torch.device
    """Where the images are when they come out; anything but the CPU cannot cross from a loader worker."""
    draws: bool
    """Whether making a batch may draw random numbers."""
    owned: tuple[Generator, ...]
    """Random generators that the data set keeps for itself."""

    def __len__(self) -> int: ...

    def batch(self, indices: Tensor) -> tuple[Tensor, Tensor]:
        """Images (N, C, H, W), float32 or uint8, and labels (N), int64, for `indices` (N), int64."""
        ...


@runtime_checkable
class MapDataset(Protocol):
    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> Any: ...


@runtime_checkable
class BatchedItems(Protocol):
    """A data set that fetches many items at once, as torch's DataLoader allows."""

    def __getitems__(self, indices: list[int], /) -> Sequence[Any]: ...


class TensorImages(Dataset[tuple[Tensor, int]]):
    """Images in memory. A batch is one selection from a tensor, not a collation of items, and draws nothing."""

    draws = False
    owned: tuple[Generator, ...] = ()

    def __init__(self, images: Tensor, labels: Tensor) -> None:
        """`images` (N, C, H, W), float32 or uint8; `labels` (N), int64."""
        self.images = images
        self.labels = labels
        self.image_shape = tuple(images.shape[1:])
        self.device = images.device

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        return self.images[index], int(self.labels[index])

    def batch(self, indices: Tensor) -> tuple[Tensor, Tensor]:
        return self.images.index_select(0, indices), self.labels.index_select(0, indices)

    def first(self, limit: int) -> "TensorImages":
        """The first `limit` images, sharing memory with this."""
        return TensorImages(self.images[:limit], self.labels[:limit])


class ImageItems(Dataset[tuple[Tensor, int]]):
    """A map-style data set of somebody else's, its items checked as they are drawn.

    PIL images become uint8 tensors (the training divides by 255 on the device), other float types float32.
    """

    draws = True

    def __init__(self, dataset: MapDataset, *, name: str = "data set") -> None:
        """Draws the first item; `name` is said in errors. Raises `InputError` where it is no image and label."""
        self.dataset = dataset
        self.name = name
        self.num_classes: int | None = None
        """Labels are held to it, once it is known."""
        self.owned = owned_generators(dataset)
        self.image_shape: tuple[int, ...] = ()
        self.device = torch.device("cpu")
        with seeded_draws(derived_seed("first item"), self.owned):
            image, self.first_label = self._checked(0, dataset[0])
        self.image_shape = tuple(image.shape)
        self.device = image.device

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        return self._checked(index, self.dataset[index])

    def batch(self, indices: Tensor) -> tuple[Tensor, Tensor]:
        wanted = indices.tolist()
        if isinstance(self.dataset, BatchedItems):
            items = self.dataset.__getitems__(wanted)
        else:
            items = [self.dataset[index] for index in wanted]
        checked = [self._checked(index, item) for index, item in zip(wanted, items, strict=True)]
        images = default_collate([image for image, _ in checked])  # straight into shared memory in a loader worker
        return images, torch.tensor([label for _, label in checked])

    def _checked(self, index: int, item: Any) -> tuple[Tensor, int]:
        if not isinstance(item, (tuple, list)) or len(item) != 2:
            raise InputError(f"{self.name}: item {index} is a {_kind(item)}; {ALLOWED_ITEM}")
        image = self._checked_image(index, item[0])
        return image, self._checked_label(index, item[1])

    def _checked_image(self, index: int, image: Any) -> Tensor:
        if isinstance(image, Image.Image):
            image = self._from_pil(index, image)
        if not isinstance(image, Tensor) or not (image.is_floating_point() or image.dtype == torch.uint8):
            raise InputError(f"{self.name}: the image of item {index} is a {_kind(image)}; {ALLOWED_ITEM}")
        if image.ndim != 3 or (self.image_shape and tuple(image.shape) != self.image_shape):
            expected = f"(C, H, W) = {self.image_shape}, as item 0 has" if self.image_shape else "(C, H, W)"
            raise InputError(
                f"{self.name}: the image of item {index} has the shape {tuple(image.shape)}; every image must have "
                f"the shape {expected}; resize or crop it in the data set's transform"
            )
        return image.float() if image.is_floating_point() else image

    def _from_pil(self, index: int, image: Image.Image) -> Tensor:
        if image.mode in ("I", "I;16", "F"):
            raise InputError(
                f"{self.name}: the image of item {index} is a PIL image of mode {image.mode}, whose range is not "
                f"known; give the data set a transform that makes it a float tensor"
            )
        if image.mode not in ("L", "RGB"):
            image = image.convert("L" if image.mode in ("1", "LA") else "RGB")
        return cast(Tensor, pil_to_tensor(image))

    def _checked_label(self, index: int, label: Any) -> int:
        number = label_of(label, f"{self.name}: item {index}")
        if self.num_classes is not None and not 0 <= number < self.num_classes:
            raise InputError(label_out_of_range(self.name, index, number, self.num_classes))
        return number


def as_source(dataset: object) -> ImageSource:
    """`dataset` itself where it is a source, else its items. Raises `InputError` where it is not map-style."""
    if isinstance(dataset, ImageSource):
        return dataset
    return ImageItems(checked_map_style(dataset, "data set"))


def checked_map_style(dataset: object, name: str) -> MapDataset:
    """Raises `InputError` where `dataset` has no length or no items, or is empty."""
    if not isinstance(dataset, MapDataset):
        raise InputError(
            f"{name}: a {type(dataset).__name__} is not a map-style data set; it needs __len__ and __getitem__ "
            f"(an IterableDataset cannot be drawn in a seeded order)"
        )
    if len(dataset) < 1:
        raise InputError(f"{name}: it is empty; at least one item is needed")
    return dataset


def limited(dataset: Any, limit: int | None) -> Any:
    """The first `limit` items of a data set; all of them without a limit or with fewer items than that."""
    if limit is None or limit >= len(dataset):
        return dataset
    return dataset.first(limit) if isinstance(dataset, TensorImages) else Subset(dataset, range(limit))


def label_of(label: Any, place: str) -> int:
    """An int, numpy integer or integer tensor of one element as an int. Raises `InputError` for anything else."""
    try:
        return operator.index(label)
    except TypeError as error:
        raise InputError(f"{place}: the label is a {_kind(label)}; {ALLOWED_ITEM}") from error


def label_out_of_range(name: str, index: int, label: int, num_classes: int) -> str:
    return (
        f"{name}: item {index} has the label {label}; with {num_classes} classes a label is 0 to {num_classes - 1}; "
        f"correct the label, or set num_classes"
    )


def _kind(value: object) -> str:
    if isinstance(value, Tensor):
        return f"{value.dtype} tensor of shape {tuple(value.shape)}"
    if isinstance(value, (tuple, list)):
        return f"{type(value).__name__} of {len(value)} values"
    return f"{type(value).__module__}.{type(value).__name__}"
