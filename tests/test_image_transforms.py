"""The usual transforms of an image."""

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor
from torchvision.transforms import v2

from trainables.image_transforms import evaluation_transform, training_transform
from trainables.seeding import seeded_draws

MEAN, STD = (0.5, 0.4, 0.3), (0.2, 0.3, 0.4)


def picture(mode: str = "RGB", width: int = 40, height: int = 30) -> Image.Image:
    pixels = np.random.RandomState(0).randint(0, 256, (height, width, 3), dtype=np.uint8)
    return Image.fromarray(pixels).convert(mode)


def augmented(seed: int, *, native_size: int | None) -> Tensor:
    transform = training_transform(
        channels=3,
        image_size=None if native_size else 16,
        native_size=native_size,
        augment=True,
        mirrored=True,
        mean=MEAN,
        std=STD,
    )
    with seeded_draws(seed):
        image: Tensor = transform(picture(width=32, height=32))
    return image


def test_an_image_is_standardised_as_torchvisions_transforms_do_it() -> None:
    of_torchvision = v2.Compose([v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)])
    ours = evaluation_transform(channels=3, image_size=None, mean=MEAN, std=STD)
    torch.testing.assert_close(ours(picture()), of_torchvision(picture()).as_subclass(Tensor))


@pytest.mark.parametrize(("mode", "channels"), [("L", 3), ("RGBA", 3), ("P", 3), ("RGB", 1), ("1", 1)])
def test_an_image_of_another_mode_gets_the_channels_that_are_wanted(mode: str, channels: int) -> None:
    transform = evaluation_transform(channels=channels, image_size=None, mean=MEAN[:channels], std=STD[:channels])
    assert transform(picture(mode)).shape == (channels, 30, 40)


@pytest.mark.parametrize("image_size", [8, 30, 64])
def test_an_image_of_any_size_is_resized_and_cropped(image_size: int) -> None:
    transform = evaluation_transform(channels=3, image_size=image_size, mean=MEAN, std=STD)
    assert transform(picture()).shape == (3, image_size, image_size)


@pytest.mark.parametrize("native_size", [None, 32])
def test_augmentation_follows_from_the_draws(native_size: int | None) -> None:
    first, again, other = (augmented(seed, native_size=native_size) for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert first.shape == other.shape
    assert not torch.equal(first, other)


@pytest.mark.parametrize(("mirrored", "flips"), [(True, {False, True}), (False, {False})])
def test_an_image_is_flipped_only_where_its_class_allows(mirrored: bool, flips: set[bool]) -> None:
    brighter_to_the_right = Image.fromarray(np.arange(32, dtype=np.uint8)[None].repeat(32, 0)).convert("RGB")
    transform = training_transform(
        channels=3, image_size=None, native_size=32, augment=True, mirrored=mirrored, mean=MEAN, std=STD
    )
    seen = set()
    for seed in range(12):
        with seeded_draws(seed):
            middle = transform(brighter_to_the_right)[0, 16, 8:24]
        seen.add(bool(middle[0] > middle[-1]))
    assert seen == flips


def test_without_augmentation_training_images_are_as_in_evaluation() -> None:
    training = training_transform(
        channels=3, image_size=16, native_size=None, augment=False, mirrored=True, mean=MEAN, std=STD
    )
    evaluation = evaluation_transform(channels=3, image_size=16, mean=MEAN, std=STD)
    assert torch.equal(training(picture()), evaluation(picture()))
