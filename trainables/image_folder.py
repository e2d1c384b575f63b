"""Images in class folders: `root/train/<class>/…`, and the same under `val` (or `validation`) and `test`."""

from pathlib import Path
from typing import Any

from torchvision.datasets import ImageFolder

from trainables.arguments import boolean_problem, image_size_problem, refuse, root_problem
from trainables.dataset_table import IMAGENET_MEAN, IMAGENET_STD
from trainables.errors import InputError
from trainables.image_data import DataParts
from trainables.image_transforms import DEFAULT_IMAGE_SIZE, Transform, evaluation_transform, training_transform

COLOUR_CHANNELS = 3
VALIDATION_FOLDERS = ("val", "validation")
LAYOUT = "images lie in root/train/<class>/ and root/val/<class>/ (or validation, or test), one folder a class"


class ClassFolders(ImageFolder):  # type: ignore[misc]  # torchvision ships no types
    """A part whose classes are the training part's: a class without images here leaves the others' numbers alone."""

    def __init__(self, folder: Path, *, classes: list[str], transform: Transform) -> None:
        self._of_training = classes
        super().__init__(str(folder), transform=transform, allow_empty=True)

    def find_classes(self, directory: str) -> tuple[list[str], dict[str, int]]:
        return self._of_training, {name: number for number, name in enumerate(self._of_training)}


def load_image_folder(
    *, root: str | None = None, image_size: int = DEFAULT_IMAGE_SIZE, augment: bool = False
) -> DataParts:
    """Colour images, resized and cropped to `image_size`, standardised by ImageNet's mean and standard deviation.

    With both a validation and a test folder the test set is kept for the winner; a test folder alone is for validation.
    Raises `InputError` where an argument is wrong, a folder is not there, or the folders' classes differ.
    """
    refuse(
        "dataset_args of image_folder",
        "root is missing, the folder of the images; " + LAYOUT if root is None else root_problem(root),
        image_size_problem(image_size),
        boolean_problem("augment", augment),
    )
    folder = Path(str(root)).expanduser().absolute()
    train = _folder(folder, ("train",))
    validation = _folder(folder, (*VALIDATION_FOLDERS, "test"))
    test = folder / "test" if validation.name != "test" and (folder / "test").is_dir() else None
    classes = _class_names(train)
    _refuse_other_classes(classes, [part for part in (validation, test) if part is not None])
    shared: dict[str, Any] = {
        "channels": COLOUR_CHANNELS,
        "image_size": image_size,
        "mean": IMAGENET_MEAN,
        "std": IMAGENET_STD,
    }
    evaluation = evaluation_transform(**shared)
    training = training_transform(native_size=None, augment=augment, mirrored=True, **shared)
    return DataParts(
        train=ClassFolders(train, classes=classes, transform=training),
        validation=ClassFolders(validation, classes=classes, transform=evaluation),
        test=None if test is None else ClassFolders(test, classes=classes, transform=evaluation),
        num_classes=len(classes),
    )


def _folder(root: Path, names: tuple[str, ...]) -> Path:
    for name in names:
        if (root / name).is_dir():
            return root / name
    raise InputError(f"dataset image_folder: looked in {root} for a folder {' or '.join(names)}; {LAYOUT}")


def _class_names(folder: Path) -> list[str]:
    names = sorted(entry.name for entry in folder.iterdir() if entry.is_dir() and not entry.name.startswith("."))
    if not names:
        raise InputError(f"dataset image_folder: {folder} has no class folders; {LAYOUT}")
    return names


def _refuse_other_classes(classes: list[str], folders: list[Path]) -> None:
    problems = [
        f"dataset image_folder: {folder} has the classes {', '.join(others)}, which the training folder has not"
        for folder in folders
        if (others := [name for name in _class_names(folder) if name not in classes])
    ]
    if problems:
        raise InputError(*problems)
