"""Values that are not finite, looked for in everything that a training step makes: outputs, gradients, weights."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from trainables.measurements import WHOLE_MODEL
from trainables.training import plain_name


class Sighting(NamedTuple):
    """A module that took or made a value that is not finite."""

    module: str
    is_nan: bool
    """Else it is infinite."""


class StepWatch:
    """Sees the outputs of a forward pass and the gradients of a backward pass, each in the order in which they come.

    Nothing waits for the device before a question is asked.
    """

    def __init__(self, model: nn.Module) -> None:
        self._model = model
        self._forward: list[tuple[Sighting, Tensor]] = []
        self._gradients: list[tuple[str, Tensor]] = []

    @contextmanager
    def watching(self) -> Iterator[None]:
        with ExitStack() as hooks:
            for name, module in self._model.named_modules():
                for handle in _watch_module(plain_name(f"{name}.").removesuffix("."), module, self._forward):
                    hooks.callback(handle.remove)
            for name, parameter in self._model.named_parameters():
                if parameter.requires_grad:
                    hooks.callback(_watch_gradient(plain_name(name), parameter, self._gradients).remove)
            yield

    def begin(self) -> None:
        """Forgets the step before."""
        self._forward.clear()
        self._gradients.clear()

    def nonfinite_outputs(self) -> list[Sighting]:
        """Each once, in the order in which they came up."""
        flags = _read([flag for _, flag in self._forward])
        return list(dict.fromkeys(seen for (seen, _), flag in zip(self._forward, flags, strict=True) if flag))

    def gradient_norms(self) -> dict[str, float]:
        """2-norm of the gradient of each parameter that got one, from the loss backwards; as scaled as they are."""
        norms = _read([norm for _, norm in self._gradients])
        return dict(zip((name for name, _ in self._gradients), norms, strict=True))


@torch.no_grad()
def first_nonfinite_weight(model: nn.Module) -> str | None:
    """The name of a parameter. Buffers are not asked: an attention mask holds infinities on purpose."""
    names = [plain_name(name) for name, _ in model.named_parameters()]
    flags = _read([~parameter.isfinite().all() for parameter in model.parameters()])
    return next((name for name, flag in zip(names, flags, strict=True) if flag), None)


def nonfinite_rows(batch: Tensor) -> tuple[int, ...]:
    """Positions in a batch of images that hold a value that is not finite."""
    rows = (~torch.isfinite(batch)).flatten(1).any(dim=1)
    return tuple(rows.nonzero().flatten().tolist())


def _watch_module(name: str, module: nn.Module, seen: list[tuple[Sighting, Tensor]]) -> Iterator[Any]:
    """What comes into a module broken, with all before it whole, was broken by the code that calls it: its parent's."""
    parent = name.rpartition(".")[0] or WHOLE_MODEL

    def before(_module: nn.Module, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> None:
        seen.extend(_sightings(parent, (arguments, keywords)))

    def after(_module: nn.Module, _arguments: object, output: object) -> None:
        seen.extend(_sightings(name or WHOLE_MODEL, output))

    yield module.register_forward_hook(after)
    if name:
        yield module.register_forward_pre_hook(before, with_kwargs=True)


def _watch_gradient(name: str, parameter: nn.Parameter, seen: list[tuple[str, Tensor]]) -> Any:
    def after(accumulated: Tensor) -> None:
        if accumulated.grad is not None:
            # float64 holds the square of every float32: a norm that is not finite has a value that is not
            seen.append((name, torch.linalg.vector_norm(accumulated.grad, dtype=torch.float64)))

    return parameter.register_post_accumulate_grad_hook(after)  # type: ignore[no-untyped-call] # torch has no type of it


def _sightings(module: str, value: object) -> Iterator[tuple[Sighting, Tensor]]:
    """What may be sighted, each with its flag on the device."""
    for tensor in _floats(value):
        yield Sighting(module, is_nan=True), tensor.detach().isnan().any()
        yield Sighting(module, is_nan=False), tensor.detach().isinf().any()


def _floats(value: object) -> Iterator[Tensor]:
    """The floating-point tensors in what a module takes or returns, however they are packed."""
    if isinstance(value, Tensor):
        if value.is_floating_point():
            yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _floats(item)
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from _floats(item)


def _read(scalars: list[Tensor]) -> list[Any]:
    """Waits for the device once."""
    return torch.stack(scalars).tolist() if scalars else []
