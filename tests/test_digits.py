"""scikit-learn's digits, as they are and grown."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import Tensor

from trainables.datasets import load_image_data
from trainables.digits import load_digits, source_digits
from trainables.digits28 import VERSION, grown, load_digits28
from trainables.image_data import DataParts
from trainables.image_sources import TensorImages


def rows(images: Tensor) -> set[bytes]:
    return {image.numpy().tobytes() for image in images}


def labelled(part: object) -> TensorImages:
    assert isinstance(part, TensorImages)
    return part


def test_digits_have_the_fixed_split_and_standardised_images() -> None:
    data = load_image_data("digits", {}, num_classes=None)
    train, validation = labelled(data.train), labelled(data.validation)
    assert (len(train), len(validation), data.num_classes, data.input_shape) == (1437, 360, 10, (1, 8, 8))
    assert train.images.mean().item() == pytest.approx(0, abs=1e-5)
    assert train.images.std().item() == pytest.approx(1, abs=1e-5)
    assert set(validation.labels.tolist()) == set(range(10))
    assert (data.scored, data.independent_validation_images, data.notes) == (True, None, ())


def test_the_split_of_the_digits_never_changes() -> None:
    (_, train), (_, validation) = source_digits()
    assert train[:8].tolist() == [2, 8, 2, 6, 6, 7, 1, 9]
    assert validation[:8].tolist() == [7, 9, 4, 7, 0, 2, 6, 1]


def test_the_digits_are_read_once_a_process() -> None:
    assert load_digits() is load_digits()


def test_grown_images_follow_from_the_seed_and_take_the_sources_in_turn() -> None:
    images, labels = torch.rand(3, 1, 8, 8), torch.tensor([4, 5, 6])
    first, first_labels = grown(images, labels, 7, seed=1)
    again, _ = grown(images, labels, 7, seed=1)
    other, _ = grown(images, labels, 7, seed=2)
    assert (first.dtype, first.shape) == (torch.uint8, (7, 1, 28, 28))
    assert first_labels.tolist() == [4, 5, 6, 4, 5, 6, 4]
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert len(rows(first)) == 7


def test_growing_leaves_the_training_processs_generator_alone() -> None:
    before = torch.get_rng_state()
    grown(torch.rand(2, 1, 8, 8, generator=torch.Generator()), torch.tensor([0, 1]), 4, seed=1)
    assert torch.equal(torch.get_rng_state(), before)


def test_training_and_validation_have_different_source_digits() -> None:
    (train, _), (validation, _) = source_digits()
    assert (len(train), len(validation)) == (1437, 360)
    everything = rows(torch.cat([train, validation]))
    assert len(everything) == 1797  # no digit occurs twice
    assert rows(train).isdisjoint(rows(validation))


@pytest.fixture(scope="module")
def digits28(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[DataParts, Path]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        load_digits28.cache_clear()
        parts = load_digits28()
        yield parts, Path(str(tmp_path_factory.getbasetemp()))
        load_digits28.cache_clear()


def test_digits28_has_the_shape_and_size_of_fashion_mnist(digits28: tuple[DataParts, Path]) -> None:
    train, validation = labelled(digits28[0].train), labelled(digits28[0].validation)
    assert (train.images.dtype, train.images.shape) == (torch.uint8, (60_000, 1, 28, 28))
    assert validation.images.shape == (10_000, 1, 28, 28)
    assert int(torch.bincount(train.labels).min()) > 5_500
    assert digits28[0].independent_validation_images == 360


def test_digits28_grows_each_part_from_its_own_sources(digits28: tuple[DataParts, Path]) -> None:
    (_, train_labels), (_, validation_labels) = source_digits()
    train, validation = labelled(digits28[0].train), labelled(digits28[0].validation)
    assert torch.equal(train.labels[: len(train_labels)], train_labels)
    assert torch.equal(validation.labels[: len(validation_labels)], validation_labels)


def test_digits28_is_stored_once_and_read_again(digits28: tuple[DataParts, Path]) -> None:
    (stored,) = digits28[1].rglob(f"digits28-v{VERSION}.pt")
    changed = stored.stat().st_mtime_ns
    load_digits28.cache_clear()
    again = load_digits28()
    assert torch.equal(labelled(again.train).images, labelled(digits28[0].train).images)
    assert stored.stat().st_mtime_ns == changed


def test_few_validation_images_of_digits28_are_as_many_source_digits(digits28: tuple[DataParts, Path]) -> None:
    few = load_image_data("digits28", {"validation_limit": 100}, num_classes=None)
    many = load_image_data("digits28", {"validation_limit": 5000}, num_classes=None)
    assert (few.independent_validation_images, many.independent_validation_images) == (100, 360)
