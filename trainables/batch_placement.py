"""A host batch onto the device, as the floats that a model takes."""

import torch
from torch import Tensor


class BatchPlacement:
    """Pinned host memory and copies that nobody waits for are one setting: each alone buys nothing."""

    def __init__(self, device: torch.device, *, channels_last: bool) -> None:
        self.device = device
        self.pin_memory = device.type != "cpu"
        self._memory_format = torch.channels_last if channels_last else torch.preserve_format
        self._is_as_loaded = device.type == "cpu" and not channels_last

    def __call__(self, images: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """`images` (N, C, H, W), float or uint8 (0 to 255, which become 0 to 1), and `labels` (N)."""
        if not self._is_as_loaded:
            images = images.to(self.device, non_blocking=self.pin_memory, memory_format=self._memory_format)
            labels = labels.to(self.device, non_blocking=self.pin_memory)
        if images.dtype is not torch.float32:
            images = images.float().div_(255) if images.dtype is torch.uint8 else images.float()
        return images, labels
