"""torchvision's image classification data sets as a table: what each is called, how its splits are, what it holds."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchvisionSet:
    """One data set of `torchvision.datasets`."""

    class_name: str
    """In `torchvision.datasets`."""
    num_classes: int
    channels: int = 3
    train: Mapping[str, Any]
    """Keyword arguments that select the training split."""
    validation: Mapping[str, Any] | None
    """Keyword arguments that select the validation split; None: the data set has one part, and a fifth of it is set
    aside by a fixed permutation."""
    test: Mapping[str, Any] | None = None
    """None: there is no third split."""
    image_size: int | None = None
    """Height and width where all images have them; None: sizes vary, and images are resized and cropped."""
    mirrored: bool = True
    """Whether an image keeps its class when mirrored; digits and letters do not."""
    mean: tuple[float, ...] = IMAGENET_MEAN
    std: tuple[float, ...] = IMAGENET_STD
    downloadable: bool = True
    """Whether torchvision can download it."""
    idx_files: tuple[str, ...] = ()
    """In `root/<class_name>/raw`, of data sets in MNIST's format, which are handed around as .gz too."""


def _by_flag(**facts: Any) -> TorchvisionSet:
    return TorchvisionSet(train={"train": True}, validation={"train": False}, **facts)


def _by_split(train: str, validation: str, test: str | None = None, **facts: Any) -> TorchvisionSet:
    third = None if test is None else {"split": test}
    return TorchvisionSet(train={"split": train}, validation={"split": validation}, test=third, **facts)


def _one_part(**facts: Any) -> TorchvisionSet:
    return TorchvisionSet(train={}, validation=None, **facts)


def _grey(mean: float, std: float, *, image_size: int = 28, mirrored: bool = False) -> dict[str, Any]:
    return {"channels": 1, "image_size": image_size, "mirrored": mirrored, "mean": (mean,), "std": (std,)}


MNIST_FILES = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)
QMNIST_FILES = (
    "qmnist-train-images-idx3-ubyte",
    "qmnist-train-labels-idx2-int",
    "qmnist-test-images-idx3-ubyte",
    "qmnist-test-labels-idx2-int",
)
EMNIST_FILES = (
    "emnist-balanced-train-images-idx3-ubyte",
    "emnist-balanced-train-labels-idx1-ubyte",
    "emnist-balanced-test-images-idx3-ubyte",
    "emnist-balanced-test-labels-idx1-ubyte",
)

TORCHVISION_SETS: Mapping[str, TorchvisionSet] = {
    "mnist": _by_flag(class_name="MNIST", num_classes=10, idx_files=MNIST_FILES, **_grey(0.1307, 0.3081)),
    "fashion_mnist": _by_flag(
        class_name="FashionMNIST", num_classes=10, idx_files=MNIST_FILES, **_grey(0.2860, 0.3530, mirrored=True)
    ),
    "kmnist": _by_flag(class_name="KMNIST", num_classes=10, idx_files=MNIST_FILES, **_grey(0.1918, 0.3483)),
    "qmnist": _by_flag(class_name="QMNIST", num_classes=10, idx_files=QMNIST_FILES, **_grey(0.1307, 0.3081)),
    "emnist": TorchvisionSet(
        class_name="EMNIST",
        num_classes=47,
        train={"split": "balanced", "train": True},
        validation={"split": "balanced", "train": False},
        idx_files=EMNIST_FILES,
        **_grey(0.1751, 0.3332),
    ),
    "cifar10": _by_flag(
        class_name="CIFAR10", num_classes=10, image_size=32, mean=(0.4914, 0.4822, 0.4465), std=(0.2470, 0.2435, 0.2616)
    ),
    "cifar100": _by_flag(
        class_name="CIFAR100",
        num_classes=100,
        image_size=32,
        mean=(0.5071, 0.4865, 0.4409),
        std=(0.2673, 0.2564, 0.2762),
    ),
    "svhn": _by_split(
        "train",
        "test",
        class_name="SVHN",
        num_classes=10,
        image_size=32,
        mirrored=False,
        mean=(0.4377, 0.4438, 0.4728),
        std=(0.1980, 0.2010, 0.1970),
    ),
    "stl10": _by_split("train", "test", class_name="STL10", num_classes=10, image_size=96),
    "usps": _by_flag(class_name="USPS", num_classes=10, **_grey(0.2469, 0.2989, image_size=16)),
    "semeion": _one_part(class_name="SEMEION", num_classes=10, **_grey(0.3236, 0.4679, image_size=16)),
    "pcam": _by_split("train", "val", "test", class_name="PCAM", num_classes=2, image_size=96),
    "eurosat": _one_part(class_name="EuroSAT", num_classes=10, image_size=64),
    "food101": _by_split("train", "test", class_name="Food101", num_classes=101),
    "dtd": _by_split("train", "val", "test", class_name="DTD", num_classes=47),
    "flowers102": _by_split("train", "val", "test", class_name="Flowers102", num_classes=102),
    "stanford_cars": _by_split("train", "test", class_name="StanfordCars", num_classes=196, downloadable=False),
    "gtsrb": _by_split("train", "test", class_name="GTSRB", num_classes=43, mirrored=False),
    "oxford_iiit_pet": _by_split("trainval", "test", class_name="OxfordIIITPet", num_classes=37),
    "country211": _by_split("train", "valid", "test", class_name="Country211", num_classes=211),
    "fgvc_aircraft": _by_split("train", "val", "test", class_name="FGVCAircraft", num_classes=100),
    "rendered_sst2": _by_split("train", "val", "test", class_name="RenderedSST2", num_classes=2, mirrored=False),
    "imagenette": _by_split("train", "val", class_name="Imagenette", num_classes=10),
    "imagenet": _by_split("train", "val", class_name="ImageNet", num_classes=1000, downloadable=False),
    "places365": _by_split("train-standard", "val", class_name="Places365", num_classes=365),
    "sun397": _one_part(class_name="SUN397", num_classes=397),
    "caltech101": _one_part(class_name="Caltech101", num_classes=101),
    "caltech256": _one_part(class_name="Caltech256", num_classes=257),
}
"""By the name that a space gives as `dataset`."""
