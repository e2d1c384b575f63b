"""A model whose fate depends on the batch size, so that one sweep holds every kind of ending."""

import os
import signal

import torch
from torch import Tensor

from tests.toy_entries import Mlp

GOOD, RAISES, DIVERGES, OUT_OF_MEMORY, KILLED = 16, 12, 24, 32, 8


class Fateful(Mlp):
    """Its evaluations are of any size, so only training meets its fate."""

    def __init__(self) -> None:
        super().__init__()
        self.forwards = 0

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = super().forward(images)
        if not self.training:
            return logits
        self.forwards += 1
        match len(images):
            case 12:
                raise RuntimeError("a bug of the model's own")
            case 24 if self.forwards >= 5:
                return logits * float("nan")
            case 32:
                raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB")
            case 8:
                os.kill(os.getpid(), signal.SIGKILL)
        return logits


def fateful() -> Fateful:
    return Fateful()
