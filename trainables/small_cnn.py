"""The built-in model for small images: two convolutions and two linear layers."""

from torch import Tensor, nn

from trainables.arguments import integer_problem, refuse
from trainables.errors import InputError

POOLED = 4
"""Two poolings halve the height and the width twice."""


class SmallCnn(nn.Module):
    """Conv(C, w, 3)-ReLU-MaxPool(2)-Conv(w, 2w, 3)-ReLU-MaxPool(2)-Linear(h)-ReLU-Linear(classes).

    For (1, 28, 28) and 10 classes it has 421,642 parameters, for (1, 8, 8) 53,002.
    """

    def __init__(self, *, num_classes: int, input_shape: tuple[int, int, int], width: int = 32, hidden: int = 128):
        """`input_shape` is (C, H, W); `width` is the first convolution's channels, `hidden` the linear layer's units.

        Raises `InputError` where an image would vanish in the poolings.
        """
        super().__init__()
        refuse(
            "model_args",
            integer_problem("width", width, at_least=1),
            integer_problem("hidden", hidden, at_least=1),
        )
        channels, height, image_width = input_shape
        if height < POOLED or image_width < POOLED:
            raise InputError(
                f"model: the built-in CNNs need images of at least {POOLED}×{POOLED}, got {height}×{image_width}"
            )
        self.features = nn.Sequential(
            nn.Conv2d(channels, width, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(width, 2 * width, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.classifier = nn.Sequential(
            nn.Flatten(),
            nn.Linear(2 * width * (height // POOLED) * (image_width // POOLED), hidden),
            nn.ReLU(),
            nn.Linear(hidden, num_classes),
        )

    def forward(self, images: Tensor) -> Tensor:
        """(N, C, H, W) floats to (N, num_classes) logits."""
        logits: Tensor = self.classifier(self.features(images))
        return logits
