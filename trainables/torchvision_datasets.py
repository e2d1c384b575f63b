"""torchvision's image classification data sets by name, from files that are there or, when asked for, downloaded."""

import hashlib
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torchvision
from torch.utils.data import Subset

from trainables.arguments import boolean_problem, image_size_problem, refuse, root_problem
from trainables.dataset_table import TORCHVISION_SETS, TorchvisionSet
from trainables.errors import InputError
from trainables.idx_files import found_files, torchvision_root
from trainables.image_data import DataParts
from trainables.image_transforms import DEFAULT_IMAGE_SIZE, Transform, evaluation_transform, training_transform
from trainables.node_cache import locked

DEBIAN_FASHION_MNIST = Path("/usr/share/datasets/fashion-mnist")
"""Where Debian's package dataset-fashion-mnist puts its .gz files."""
VALIDATION_SHARE = 0.2
"""Of a data set that has one part only."""
SPLIT_SEED = 0


def load_torchvision(
    name: str,
    *,
    root: str | None = None,
    download: bool = False,
    image_size: int | None = None,
    augment: bool = False,
) -> DataParts:
    """`root` is the folder that torchvision's class takes, relative to the working folder; sets in MNIST's format may
    be packed as .gz there. `image_size` resizes; it is 224 for images of various sizes. `augment` crops and flips.

    Raises `InputError` where an argument is wrong or the files are not there.
    """
    where = f"dataset_args of {name}"
    entry = TORCHVISION_SETS[name]
    refuse(
        where,
        root_problem(root),
        boolean_problem("download", download),
        image_size_problem(image_size),
        boolean_problem("augment", augment),
        f"{entry.class_name} cannot be downloaded by torchvision; get its files and give root"
        if download is True and not entry.downloadable
        else None,
    )
    place = _place(name, entry, root, download)
    size = image_size if image_size is not None or entry.image_size is not None else DEFAULT_IMAGE_SIZE
    shared: dict[str, Any] = {"channels": entry.channels, "image_size": size, "mean": entry.mean, "std": entry.std}
    train_transform = training_transform(
        native_size=entry.image_size, augment=augment, mirrored=entry.mirrored, **shared
    )
    part = partial(_part, name, entry, place, download)
    return _parts(entry, part, train_transform, evaluation_transform(**shared))


def _parts(entry: TorchvisionSet, part: Any, train: Transform, evaluation: Transform) -> DataParts:
    if entry.validation is not None:
        return DataParts(
            train=part(entry.train, train),
            validation=part(entry.validation, evaluation),
            test=None if entry.test is None else part(entry.test, evaluation),
            num_classes=entry.num_classes,
        )
    whole, whole_for_evaluation = part(entry.train, train), part(entry.train, evaluation)
    order = np.random.RandomState(SPLIT_SEED).permutation(len(whole)).tolist()
    validation_images = round(len(whole) * VALIDATION_SHARE)
    return DataParts(
        train=Subset(whole, order[validation_images:]),
        validation=Subset(whole_for_evaluation, order[:validation_images]),
        num_classes=entry.num_classes,
    )


def _place(name: str, entry: TorchvisionSet, root: str | None, download: bool) -> Path:
    """The root to give to torchvision."""
    given = None if root is None else Path(root).expanduser().absolute()
    if given is None and name == "fashion_mnist" and DEBIAN_FASHION_MNIST.is_dir():
        given = DEBIAN_FASHION_MNIST
    if given is None:
        raise InputError(f"dataset {name}: dataset_args needs root, the folder of its files; {_remedy(name, entry)}")
    if not entry.idx_files:
        return given
    files = found_files(given, entry.class_name, entry.idx_files)
    missing = [file for file in entry.idx_files if file not in files]
    if not missing:
        return torchvision_root(given, entry.class_name, files)
    if download:
        return given
    raise InputError(
        f"dataset {name}: looked in {given} and in {given / entry.class_name / 'raw'} and found no "
        f"{' and no '.join(missing)}, plain or with .gz; {_remedy(name, entry)}"
    )


def _part(
    name: str, entry: TorchvisionSet, root: Path, download: bool, split: Mapping[str, Any], transform: Transform
) -> Any:
    build = partial(vars(torchvision.datasets)[entry.class_name], str(root), transform=transform, **split)
    try:
        if not entry.downloadable:
            return build()
        if not download:
            return build(download=False)
        with locked(f"download-{hashlib.sha256(str(root).encode()).hexdigest()[:16]}"):
            return build(download=True)
    except ModuleNotFoundError as error:
        raise InputError(
            f"dataset {name}: torchvision needs the package {error.name} to read it; install it with: "
            f"pip install {error.name}"
        ) from error
    except (RuntimeError, OSError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise InputError(
            f"dataset {name}: torchvision cannot read {entry.class_name} from {root}: {reason}; {_remedy(name, entry)}"
        ) from error


def _remedy(name: str, entry: TorchvisionSet) -> str:
    remedies = [f"give dataset_args.root, a folder that torchvision.datasets.{entry.class_name} reads"]
    if entry.downloadable:
        remedies.append("add download: true to fetch it there")
    if name == "fashion_mnist":
        remedies.append("install Debian's package dataset-fashion-mnist and leave root out")
    return ", or ".join(remedies)
