"""Models whose graph breaks and recompilations are known, for the tests of the compiler's account."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from tests.toy_entries import Broken, Mlp


class Printing(nn.Module):
    def forward(self, hidden: Tensor) -> Tensor:
        print("", end="")  # noqa: T201 - what people leave in their models, and the compiler cannot take
        return hidden.relu()


class Asking(nn.Module):
    """It compares a number that is another one in each step, for which the compiler compiles again."""

    def forward(self, hidden: Tensor) -> Tensor:
        if hidden.sum().item() > float("inf"):
            return hidden
        return hidden.relu()


class Breaking(nn.Module):
    def forward(self, hidden: Tensor) -> Tensor:
        torch._dynamo.graph_break()
        return hidden.relu()


BREAKS: dict[str, Callable[[], nn.Module]] = {"print": Printing, "item": Asking, "break": Breaking}


class KnownBreaks(Mlp):
    """Each of the given layers breaks the graph once."""

    def __init__(self, breaks: list[str]) -> None:
        super().__init__()
        self.breaking = nn.ModuleList(BREAKS[name]() for name in breaks)

    def forward(self, images: Tensor) -> Tensor:
        hidden = self.first(images.flatten(1))
        if len(self.breaking) > 0:
            hidden = self.breaking[0](hidden)
        if len(self.breaking) > 1:
            hidden = self.breaking[1](hidden)
        if len(self.breaking) > 2:
            hidden = self.breaking[2](hidden)
        return self.second(hidden)


def known_breaks(breaks: list[str]) -> nn.Module:
    return KnownBreaks(breaks)


class BreaksInALoop(Mlp):
    """The compiler can take no part of a function that breaks its graph within a loop, but what that calls."""

    def forward(self, images: Tensor) -> Tensor:
        hidden = self.first(images.flatten(1))
        for _ in range(2):
            torch._dynamo.graph_break()
            hidden = self.block(hidden)
        return self.second(hidden)

    def block(self, hidden: Tensor) -> Tensor:
        return hidden.relu() + 1


def breaks_in_a_loop() -> nn.Module:
    return BreaksInALoop()


class BrokenWithAnotherHead(Broken):
    """The graph before the break is that of `Broken`, the one after it is not."""

    def forward(self, images: Tensor) -> Tensor:
        hidden = self.first(images.flatten(1))
        torch._dynamo.graph_break()
        return self.second(hidden.tanh())


def broken_with_another_head() -> nn.Module:
    return BrokenWithAnotherHead()
