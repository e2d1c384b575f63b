"""A model's name, or an entry, into a `torch.nn.Module` that maps (N, C, H, W) floats to (N, num_classes) logits."""

import difflib
import importlib.util
from collections.abc import Mapping
from copy import deepcopy
from typing import Any

import torch
import torchvision
from torch import Tensor, nn

from trainables.arguments import call_with_arguments
from trainables.entries import TIMM_PREFIX, is_entry, load_entry
from trainables.errors import InputError
from trainables.model_names import BUILT_IN_MODELS, model_names
from trainables.small_cnn import SmallCnn

COLOUR_CHANNELS = 3


class GreyAsColour(nn.Module):
    """A network for colour images, given grey ones: the one channel is shown to it three times."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.network(images.expand(-1, COLOUR_CHANNELS, -1, -1))
        return logits


def build_model(
    name: str, args: Mapping[str, Any], *, num_classes: int, input_shape: tuple[int, int, int]
) -> nn.Module:
    """Weights are drawn from torch's global generator, which the caller seeds. `input_shape` is (C, H, W).

    Raises `InputError` where there is no such model, or it cannot take such arguments or images; what a user's entry
    raises itself goes through.
    """
    facts = {"num_classes": num_classes, "input_shape": input_shape}
    where = f"model_args of {name}"
    if is_entry(name):
        return _module(name, call_with_arguments(load_entry(name), args, where=where, offered=facts))
    if name in BUILT_IN_MODELS:
        return _module(name, call_with_arguments(SmallCnn, args, where=where, offered=facts))
    if name.startswith(TIMM_PREFIX):
        return _timm_model(name, args, num_classes, input_shape)
    if name in model_names():
        return _torchvision_model(name, args, num_classes, input_shape)
    near = difflib.get_close_matches(name, model_names(), n=1)
    hint = f"did you mean {near[0]}?" if near else "see the built-in and torchvision's names in the documentation"
    raise InputError(
        f"model {name}: there is no such model; {hint}; models of your own are written package.module:callable"
    )


def _module(name: str, built: object) -> nn.Module:
    if not isinstance(built, nn.Module):
        raise InputError(f"model {name}: it returned a {type(built).__name__}; it must return a torch.nn.Module")
    return built


def _timm_model(name: str, args: Mapping[str, Any], num_classes: int, input_shape: tuple[int, int, int]) -> nn.Module:
    if importlib.util.find_spec("timm") is None:
        raise InputError(f"model {name}: the package timm is not installed; install it with: pip install timm")
    timm = importlib.import_module("timm")
    facts = {"pretrained": False, "num_classes": num_classes, "in_chans": input_shape[0]}
    return _module(name, timm.create_model(name.removeprefix(TIMM_PREFIX), **{**facts, **args}))


def _torchvision_model(
    name: str, args: Mapping[str, Any], num_classes: int, input_shape: tuple[int, int, int]
) -> nn.Module:
    channels, height, width = input_shape
    if channels not in (1, COLOUR_CHANNELS):
        raise InputError(f"model {name}: torchvision's models take images of 1 or 3 channels, got {channels}")
    facts = {"weights": None, "num_classes": num_classes, **_size_arguments(name, height, width)}
    try:
        network: nn.Module = torchvision.models.get_model(name, **{**facts, **args})
    except (TypeError, ValueError, AssertionError) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"model_args of {name}: {reason}, with images of {height}×{width}") from error
    _refuse_small_images(name, network, height, width)
    return network if channels == COLOUR_CHANNELS else GreyAsColour(network)


def _size_arguments(name: str, height: int, width: int) -> dict[str, Any]:
    """What torchvision would otherwise take for granted: images of 224×224, or an auxiliary output while training."""
    if name.startswith("vit_"):
        return {"image_size": height}
    if name == "maxvit_t":
        return {"input_size": (height, width)}
    if name in ("googlenet", "inception_v3"):
        return {"aux_logits": False, "init_weights": True}
    return {}


def _refuse_small_images(name: str, network: nn.Module, height: int, width: int) -> None:
    """A size below the one that torchvision states beside the weights is tried out, on a copy without memory: some
    networks were only trained that large, in others a smaller image vanishes between the layers.
    """
    least_height, least_width = torchvision.models.get_model_weights(name).DEFAULT.meta["min_size"]
    if height >= least_height and width >= least_width:
        return
    copy = deepcopy(network).to("meta").eval()
    try:
        with torch.no_grad():
            copy(torch.empty(1, COLOUR_CHANNELS, height, width, device="meta"))
    except (RuntimeError, ValueError, AssertionError) as error:
        raise InputError(
            f"model {name}: it needs images of at least {least_height}×{least_width}, got {height}×{width} ({error}); "
            f"take another model, or larger images"
        ) from error
