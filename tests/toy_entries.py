"""Small models and data sets that behave well, or badly in one way each, for the tests of trials."""

import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import Dataset

CLASSES = 10
SIDE = 8


class Stripes(Dataset):
    """Item i has the label i modulo 10, which a row of its image shows; learnable, and nothing random in it."""

    def __init__(self, images: int, *, label: int | None = None) -> None:
        self.images = images
        self.label = label

    def __len__(self) -> int:
        return self.images

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        image = torch.zeros(1, SIDE, SIDE)
        image[0, index % CLASSES % SIDE, : 1 + index % CLASSES] = 1 + index / self.images
        return image, index % CLASSES if self.label is None else self.label


class NoisyStripes(Stripes):
    """Augmented: every draw of an item adds noise from torch's global generator."""

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        image, label = super().__getitem__(index)
        return image + 0.1 * torch.rand_like(image), label


class SimulatedTime:
    """A clock that stands still but for what the entries below let pass; for what runs in one process."""

    def __init__(self) -> None:
        self.now = 0.0

    def advance(self, seconds: float) -> None:
        self.now += seconds


SIMULATED = SimulatedTime()


class WaitingStripes(Stripes):
    """Every item takes `seconds`: of the simulated clock, or of the real one."""

    def __init__(self, images: int, seconds: float, wait: Callable[[float], None]) -> None:
        super().__init__(images)
        self.seconds = seconds
        self.wait = wait

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        self.wait(self.seconds)
        return super().__getitem__(index)


def waiting_stripes(seconds: float, train: int = 96, real: bool = False) -> tuple[Dataset, Dataset]:
    return WaitingStripes(train, seconds, time.sleep if real else SIMULATED.advance), Stripes(40)


class RaisingOnceDrawn(Stripes):
    """Fails from draw number `draws` on."""

    def __init__(self, images: int, draws: int) -> None:
        super().__init__(images)
        self.draws = draws

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        self.draws -= 1
        if self.draws < 0:
            raise OSError("the disk is gone")
        return super().__getitem__(index)


def raising_once_drawn(draws: int) -> tuple[Dataset, Dataset]:
    return RaisingOnceDrawn(96, draws), Stripes(40)


class DyingWorker(Stripes):
    """Item 20 ends the worker process that draws it, as the kernel does where memory runs out."""

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        if index == 20 and torch.utils.data.get_worker_info() is not None:
            import os
            import signal

            os.kill(os.getpid(), signal.SIGKILL)
        return super().__getitem__(index)


def stripes(train: int = 96, validation: int = 40) -> tuple[Dataset, Dataset]:
    return Stripes(train), Stripes(validation)


def noisy_stripes(train: int = 96, validation: int = 40) -> tuple[Dataset, Dataset]:
    return NoisyStripes(train), Stripes(validation)


def labels_beyond_the_classes() -> tuple[Dataset, Dataset]:
    return Stripes(64, label=99), Stripes(32)


def dying_worker() -> tuple[Dataset, Dataset]:
    return DyingWorker(96), Stripes(32)


class Mlp(nn.Module):
    def __init__(self, *, dropout: float = 0.0, norm: bool = False) -> None:
        super().__init__()
        self.first = nn.Linear(SIDE * SIDE, 16)
        self.norm = nn.BatchNorm1d(16) if norm else nn.Identity()
        self.second = nn.Linear(16, CLASSES)
        self.dropout = dropout

    def forward(self, images: Tensor) -> Tensor:
        hidden = functional.relu(self.norm(self.first(images.flatten(1))))
        return self.second(functional.dropout(hidden, self.dropout, self.training))


def mlp(dropout: float = 0.0, norm: bool = False) -> nn.Module:
    return Mlp(dropout=dropout, norm=norm)


class WaitingMlp(Mlp):
    """Every training forward takes `seconds`: of the simulated clock, or of the real one."""

    def __init__(self, seconds: float, wait: Callable[[float], None]) -> None:
        super().__init__()
        self.seconds = seconds
        self.wait = wait

    def forward(self, images: Tensor) -> Tensor:
        if self.training:
            self.wait(self.seconds)
        return super().forward(images)


def waiting_mlp(seconds: float, real: bool = False) -> nn.Module:
    return WaitingMlp(seconds, time.sleep if real else SIMULATED.advance)


class NanFromStep(Mlp):
    """Its logits are NaN from the given training forward on, and fine whenever it is evaluated."""

    def __init__(self, step: int, value: float) -> None:
        super().__init__()
        self.step = step
        self.value = value
        self.forwards = 0

    def forward(self, images: Tensor) -> Tensor:
        logits = super().forward(images)
        self.forwards += self.training
        return logits * self.value if self.training and self.forwards >= self.step else logits


def nan_from_step(step: int = 5, value: float = float("nan")) -> nn.Module:
    return NanFromStep(step, value)


class NanInEvaluation(Mlp):
    def forward(self, images: Tensor) -> Tensor:
        return super().forward(images) * (1.0 if self.training else float("nan"))


def nan_in_evaluation() -> nn.Module:
    return NanInEvaluation()


class HiddenNanWeight(Mlp):
    """Carries a weight that is NaN after the first step, and that no forward uses."""

    def __init__(self) -> None:
        super().__init__()
        self.unused = nn.Parameter(torch.zeros(()))

    def forward(self, images: Tensor) -> Tensor:
        if self.training:
            self.unused.data.fill_(float("nan"))
        return super().forward(images)


def hidden_nan_weight() -> nn.Module:
    return HiddenNanWeight()


class OutOfMemoryAbove(Mlp):
    def __init__(self, images: int, error: Exception) -> None:
        super().__init__()
        self.images = images
        self.error = error

    def forward(self, images: Tensor) -> Tensor:
        if len(images) > self.images:
            raise self.error
        return super().forward(images)


def out_of_memory_above(images: int = 32) -> nn.Module:
    return OutOfMemoryAbove(images, torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB"))


def host_out_of_memory() -> nn.Module:
    return OutOfMemoryAbove(
        0, RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes")
    )


class Raising(Mlp):
    def forward(self, images: Tensor) -> Tensor:
        raise KeyError("no such layer")


def raising() -> nn.Module:
    return Raising()


def exiting() -> nn.Module:
    raise SystemExit("stop")


class Modes(Mlp):
    """Remembers for every forward whether it was a training one, and its batch size."""

    seen: list[tuple[str, int]] = []  # noqa: RUF012 - shared on purpose: the trial builds the instance itself

    def forward(self, images: Tensor) -> Tensor:
        self.seen.append(("train" if self.training else "evaluate", len(images)))
        return super().forward(images)


def modes() -> nn.Module:
    Modes.seen.clear()
    return Modes()


class Overflowing(Mlp):
    """The gradient overflows float16 in the given training forwards, while the loss stays finite."""

    def __init__(self, steps: list[int]) -> None:
        super().__init__()
        self.steps = steps
        self.forwards = 0

    def forward(self, images: Tensor) -> Tensor:
        logits = super().forward(images)
        if self.training:
            self.forwards += 1
            if self.forwards in self.steps:
                return _InfiniteGradient.apply(logits)
        return logits


class _InfiniteGradient(torch.autograd.Function):
    @staticmethod
    def forward(_: object, logits: Tensor) -> Tensor:
        return logits.clone()

    @staticmethod
    def backward(_: object, gradient: Tensor) -> Tensor:
        return gradient * float("inf")


def overflowing(steps: list[int]) -> nn.Module:
    return Overflowing(steps)


class Broken(Mlp):
    """Cannot be compiled in one graph: a graph break in the middle."""

    def forward(self, images: Tensor) -> Tensor:
        hidden = self.first(images.flatten(1))
        torch._dynamo.graph_break()
        return self.second(functional.relu(hidden))


def broken() -> nn.Module:
    return Broken()


class SetsTf32(Mlp):
    """As much user code does, it turns TF32 on for the whole process."""

    def __init__(self, *, in_forward: bool) -> None:
        super().__init__()
        self.in_forward = in_forward
        torch.set_float32_matmul_precision("high")
        torch.backends.cudnn.allow_tf32 = True

    def forward(self, images: Tensor) -> Tensor:
        if self.in_forward:
            torch.set_float32_matmul_precision("high")
        return super().forward(images)


def sets_tf32(in_forward: bool = False) -> nn.Module:
    return SetsTf32(in_forward=in_forward)


class Unsavable(Mlp):
    def get_extra_state(self) -> object:
        return {1, 2}

    def set_extra_state(self, state: object) -> None:
        pass


def unsavable() -> nn.Module:
    return Unsavable()


class RaisingFromStep(NanFromStep):
    error: type[BaseException] = KeyError

    def forward(self, images: Tensor) -> Tensor:
        logits = super().forward(images)
        if self.forwards >= self.step:
            raise self.error("no such layer")
        return logits


def raising_from_step(step: int, exits: bool = False) -> nn.Module:
    model = RaisingFromStep(step, 1.0)
    model.error = SystemExit if exits else KeyError
    return model


class Uncompilable(Mlp):
    @torch.compiler.disable
    def forward(self, images: Tensor) -> Tensor:
        return super().forward(images)


def uncompilable() -> nn.Module:
    return Uncompilable()


class Reshaped(Mlp):
    """Returns what `reshape` makes of the logits."""

    def __init__(self, reshape: Callable[[Tensor], object]) -> None:
        super().__init__()
        self.reshape = reshape

    def forward(self, images: Tensor) -> Any:
        return self.reshape(super().forward(images))


def too_few_logits() -> nn.Module:
    return Reshaped(lambda logits: logits[:, :3])


def two_outputs() -> nn.Module:
    return Reshaped(lambda logits: (logits, logits))


def flat_logits() -> nn.Module:
    return Reshaped(lambda logits: logits[:, 0])


class PartlyCompiled(Mlp):
    """A user compiled one layer, so that torch names its parameters `second._orig_mod.…`."""

    def __init__(self) -> None:
        super().__init__()
        self.second = torch.compile(self.second, backend="eager")


def partly_compiled() -> nn.Module:
    return PartlyCompiled()


class StubbornInTraining(Mlp):
    """Computes in float32 while it trains, whatever autocast says, and follows autocast in evaluation."""

    def forward(self, images: Tensor) -> Tensor:
        with torch.autocast(images.device.type, enabled=not self.training and torch.is_autocast_enabled("cpu")):
            return super().forward(images)


def stubborn_in_training() -> nn.Module:
    return StubbornInTraining()
