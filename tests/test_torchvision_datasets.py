"""torchvision's data sets from local files."""

import gzip
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from trainables import torchvision_datasets
from trainables.datasets import load_image_data
from trainables.errors import InputError
from trainables.loading import TrainingBatches
from trainables.specs import CompileMode, Precision, TrainingConfig

FASHION_FILES = {"train-images-idx3-ubyte": 6, "t10k-images-idx3-ubyte": 4}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own, and no files of Debian's."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(torchvision_datasets, "DEBIAN_FASHION_MNIST", tmp_path / "debian")
    return tmp_path / "cache" / "sweep-orchestrator"


def idx_files() -> dict[str, bytes]:
    """Six training and four test images of 28×28: image i is filled with i, its label is i."""
    files = {}
    for name, count in FASHION_FILES.items():
        pixels = np.arange(count, dtype=np.uint8).repeat(28 * 28).tobytes()
        labels = np.arange(count, dtype=np.uint8).tobytes()
        files[name] = struct.pack(">IIII", 2051, count, 28, 28) + pixels
        files[name.replace("images-idx3", "labels-idx1")] = struct.pack(">II", 2049, count) + labels
    return files


def write(folder: Path, *, packed: bool) -> None:
    folder.mkdir(parents=True)
    for name, content in idx_files().items():
        if packed:
            (folder / f"{name}.gz").write_bytes(gzip.compress(content))
        else:
            (folder / name).write_bytes(content)


def labels(part: Any) -> list[int]:
    return [part[index][1] for index in range(len(part))]


@pytest.mark.parametrize("inside", ["FashionMNIST/raw", "raw", "FashionMNIST", "."])
@pytest.mark.parametrize("packed", [True, False], ids=["packed", "plain"])
def test_the_files_of_mnists_format_are_found_packed_or_plain(tmp_path: Path, inside: str, packed: bool) -> None:
    root = tmp_path / "root"
    write(root / inside, packed=packed)
    data = load_image_data("fashion_mnist", {"root": str(root)}, num_classes=None)
    assert (labels(data.train), labels(data.validation)) == ([0, 1, 2, 3, 4, 5], [0, 1, 2, 3])
    assert (data.num_classes, data.input_shape, data.test) == (10, (1, 28, 28), None)
    assert data.train[5][0][0, 0, 0].item() == pytest.approx((5 / 255 - 0.2860) / 0.3530)


def test_files_that_lie_as_torchvision_expects_are_not_copied(tmp_path: Path, cache: Path) -> None:
    write(tmp_path / "root" / "FashionMNIST" / "raw", packed=False)
    load_image_data("fashion_mnist", {"root": str(tmp_path / "root")}, num_classes=None)
    assert not cache.exists()


def test_packed_files_are_unpacked_once_beside_nothing_of_the_users(tmp_path: Path, cache: Path) -> None:
    write(tmp_path / "root", packed=True)
    before = sorted((tmp_path / "root").rglob("*"))
    for _ in range(2):
        load_image_data("fashion_mnist", {"root": str(tmp_path / "root")}, num_classes=None)
    assert sorted((tmp_path / "root").rglob("*")) == before
    assert len([path for path in cache.iterdir() if path.is_dir()]) == 1


def test_a_relative_root_is_found_in_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "root", packed=True)
    monkeypatch.chdir(tmp_path)
    assert len(load_image_data("mnist", {"root": "root"}, num_classes=None).train) == 6  # type: ignore[arg-type]


def test_debians_package_is_used_for_fashion_mnist_where_no_root_is_given(tmp_path: Path) -> None:
    write(tmp_path / "debian", packed=True)
    assert len(load_image_data("fashion_mnist", {}, num_classes=None).train) == 6  # type: ignore[arg-type]


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    write(tmp_path / "root", packed=True)
    damaged = tmp_path / "root" / "train-images-idx3-ubyte.gz"
    damaged.write_bytes(damaged.read_bytes()[:-20])
    with pytest.raises(InputError, match=r"train-images-idx3-ubyte\.gz: a damaged \.gz file"):
        load_image_data("fashion_mnist", {"root": str(tmp_path / "root")}, num_classes=None)


def test_missing_files_are_named_with_the_folder_and_the_remedies(tmp_path: Path) -> None:
    write(tmp_path / "root", packed=True)
    (tmp_path / "root" / "train-images-idx3-ubyte.gz").unlink()
    with pytest.raises(InputError) as error:
        load_image_data("fashion_mnist", {"root": str(tmp_path / "root")}, num_classes=None)
    message = str(error.value)
    for text in (f"looked in {tmp_path / 'root'}", "no train-images-idx3-ubyte,", "download: true", "Debian"):
        assert text in message


@pytest.mark.parametrize(
    ("name", "args", "texts"),
    [
        ("cifar10", {}, ["dataset_args needs root", "download: true"]),
        ("cifar10", {"root": "nowhere"}, ["cannot read CIFAR10 from", "nowhere", "download: true"]),
        ("imagenet", {"root": "nowhere"}, ["cannot read ImageNet from", "nowhere"]),
        ("imagenet", {"root": "nowhere", "download": True}, ["ImageNet cannot be downloaded by torchvision"]),
        ("cifar10", {"root": 3, "download": "yes"}, ["root must be the path of a folder", "download must be true or"]),
        ("cifar10", {"root": "x", "image_size": 0, "augment": 1}, ["image_size must be at least 1", "augment must be"]),
        ("cifar10", {"rot": "x"}, ["no argument rot; did you mean root?"]),
    ],
)
def test_what_cannot_be_read_is_answered_with_place_and_remedy(
    name: str, args: dict[str, Any], texts: list[str]
) -> None:
    with pytest.raises(InputError) as error:
        load_image_data(name, args, num_classes=None)
    for text in texts:
        assert text in str(error.value)


def write_eurosat(root: Path) -> None:
    """Ten classes of five images, each 64×64."""
    for number in range(10):
        folder = root / "eurosat" / "2750" / f"class{number}"
        folder.mkdir(parents=True)
        for image in range(5):
            Image.new("RGB", (64, 64), (number, image, 0)).save(folder / f"{image}.png")


def test_a_data_set_of_one_part_is_split_alike_every_time(tmp_path: Path) -> None:
    write_eurosat(tmp_path)
    first, second = (load_image_data("eurosat", {"root": str(tmp_path)}, num_classes=None) for _ in range(2))
    images = [torch.stack([data.train[i][0] for i in range(40)]) for data in (first, second)]
    validation = torch.stack([first.validation[i][0] for i in range(10)])
    assert torch.equal(*images)
    assert (len(first.train), len(first.validation)) == (40, 10)  # type: ignore[arg-type]
    assert len(torch.unique(torch.cat([images[0], validation]), dim=0)) == 50


def test_images_are_resized_and_augmented_when_asked(tmp_path: Path) -> None:
    write(tmp_path / "root", packed=True)
    args = {"root": str(tmp_path / "root")}
    assert load_image_data("fashion_mnist", {**args, "image_size": 32}, num_classes=None).input_shape == (1, 32, 32)
    data = load_image_data("fashion_mnist", {**args, "augment": True}, num_classes=None)
    config = TrainingConfig(precision=Precision.FP32, batch_size=6, compile=CompileMode.OFF, lr=1.0, num_workers=0)
    batches = TrainingBatches(data.train, config=config, seed=0, pin_memory=False)
    (first, _), (again, _), (other, _) = (next(batches.epoch(epoch)) for epoch in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first.sum((1, 2, 3)).sort().values, other.sum((1, 2, 3)).sort().values)
    assert torch.equal(data.validation[3][0], data.validation[3][0])


def test_the_real_fashion_mnist_is_read_from_packed_files(shared: Path, tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    for name in ("images-idx3", "labels-idx1"):
        (root / f"train-{name}-ubyte.gz").symlink_to(shared / "data" / "fashion_mnist" / f"train10k-{name}-ubyte.gz")
        raw = shared / "data" / "fashion_mnist" / "FashionMNIST" / "raw"
        (root / f"t10k-{name}-ubyte.gz").symlink_to(raw / f"t10k-{name}-ubyte.gz")
    data = load_image_data("fashion_mnist", {"root": str(root), "train_limit": 2560}, num_classes=None)
    assert (len(data.train), len(data.validation)) == (2560, 10_000)  # type: ignore[arg-type]
    assert [data.train[index][1] for index in range(5)] == [9, 0, 0, 3, 0]
    images = torch.stack([data.train[index][0] for index in range(200)])
    assert images.mean().item() == pytest.approx(0, abs=0.1)
    assert images.std().item() == pytest.approx(1, abs=0.1)
