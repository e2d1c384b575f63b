"""Images in class folders."""

from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from trainables.datasets import load_image_data
from trainables.errors import InputError


def write(folder: Path, **classes: int) -> None:
    """So many images in each class folder, of various sizes and modes."""
    for name, count in classes.items():
        (folder / name).mkdir(parents=True)
        for number in range(count):
            Image.new("RGB" if number % 2 else "L", (20 + number, 30), 90).save(folder / name / f"{number}.png")


def load(root: Path, **args: Any) -> Any:
    return load_image_data("image_folder", {"root": str(root), "image_size": 16, **args}, num_classes=None)


@pytest.mark.parametrize("validation", ["val", "validation", "test"])
def test_images_of_various_sizes_become_one_size(tmp_path: Path, validation: str) -> None:
    write(tmp_path / "train", cat=3, dog=2)
    write(tmp_path / validation, cat=1, dog=1)
    data = load(tmp_path)
    assert (len(data.train), len(data.validation), data.test) == (5, 2, None)
    assert (data.num_classes, data.input_shape) == (2, (3, 16, 16))
    assert [data.train[index][1] for index in range(5)] == [0, 0, 0, 1, 1]
    assert data.train[4][0].shape == (3, 16, 16)


def test_a_test_folder_beside_a_validation_folder_is_the_test_set(tmp_path: Path) -> None:
    write(tmp_path / "train", cat=1, dog=1)
    write(tmp_path / "val", cat=1, dog=1)
    write(tmp_path / "test", cat=2, dog=2)
    assert len(load(tmp_path).test) == 4


def test_a_class_without_validation_images_leaves_the_others_numbers_alone(tmp_path: Path) -> None:
    write(tmp_path / "train", ant=1, cat=1, dog=1)
    write(tmp_path / "val", dog=1)
    data = load(tmp_path)
    assert (data.num_classes, data.validation[0][1]) == (3, 2)


def test_a_validation_class_that_training_has_not_is_named(tmp_path: Path) -> None:
    write(tmp_path / "train", cat=1)
    write(tmp_path / "val", cat=1, cow=1)
    with pytest.raises(InputError, match="val has the classes cow, which the training folder has not"):
        load(tmp_path)


def test_missing_folders_are_named_with_the_layout(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"looked in .* for a folder train; .*root/val/<class>"):
        load(tmp_path)
    (tmp_path / "train").mkdir()
    with pytest.raises(InputError, match="for a folder val or validation or test"):
        load(tmp_path)
    (tmp_path / "val").mkdir()
    with pytest.raises(InputError, match="train has no class folders"):
        load(tmp_path)
    (tmp_path / "train" / "cat").mkdir()
    (tmp_path / "val" / "cat").mkdir()
    with pytest.raises(InputError, match="training set: it is empty"):
        load(tmp_path)


def test_the_root_is_asked_for() -> None:
    with pytest.raises(InputError, match="root is missing"):
        load_image_data("image_folder", {}, num_classes=None)


def test_augmented_images_keep_their_size(tmp_path: Path) -> None:
    write(tmp_path / "train", cat=2)
    write(tmp_path / "val", cat=1)
    assert load(tmp_path, augment=True).input_shape == (3, 16, 16)
