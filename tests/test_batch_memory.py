"""Batches that are used up make room: however long a training is, it holds two of them at most."""

import weakref

import torch
from torch import Tensor, nn

from tests.built_outcomes import config
from trainables.batch_placement import BatchPlacement
from trainables.image_sources import TensorImages
from trainables.loading import TrainingBatches
from trainables.specs import MeasurementProtocol
from trainables.timing import DeviceClock, WindowTimer
from trainables.training import Training


class WatchedImages(TensorImages):
    """Notes at each batch how many earlier ones are still there."""

    def __init__(self) -> None:
        super().__init__(torch.zeros(12, 1, 2, 2), torch.zeros(12, dtype=torch.int64))
        self.made: list[weakref.ref[Tensor]] = []
        self.alive: list[int] = []

    def batch(self, indices: Tensor) -> tuple[Tensor, Tensor]:
        self.alive.append(sum(reference() is not None for reference in self.made))
        images, labels = super().batch(indices)
        self.made.append(weakref.ref(images))
        return images, labels


def test_of_all_batches_before_the_one_in_the_making_only_the_last_is_still_there() -> None:
    source, knobs = WatchedImages(), config(batch_size=4)
    device = torch.device("cpu")
    batches = TrainingBatches(source, config=knobs, seed=0, pin_memory=False)
    clock = DeviceClock.of(device)
    training = Training(
        nn.Sequential(nn.Flatten(), nn.Linear(4, 2)),
        knobs,
        batches,
        placement=BatchPlacement(device, channels_last=False),
        clock=clock,
        intervals=2,
        num_classes=2,
    )
    training.train_to(6, WindowTimer(MeasurementProtocol(epochs=2), clock))
    assert source.alive == [0, 1, 1, 1, 1, 1]
