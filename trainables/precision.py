"""Precision: autocast, the GradScaler, and the process-wide switches, set for a trial and restored after it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import nn

from trainables.specs import Precision

AUTOCAST_DTYPES = {Precision.FP16: torch.float16, Precision.BF16: torch.bfloat16}


@dataclass(frozen=True, slots=True, kw_only=True)
class Switches:
    """The process-wide switches that decide what float32 arithmetic runs in."""

    matmul_precision: str
    """`highest` (IEEE), `high` (TF32) or `medium`; torch keeps it for GPU and CPU matrix products together."""
    convolution_tf32: bool
    cudnn_benchmark: bool
    general_fp32_precision: str
    """torch's default for operations with no switch of their own: `none`, `ieee`, `tf32` or `bf16`."""
    cudnn_fp32_precision: str

    @classmethod
    def now(cls) -> "Switches":
        """Read from torch's newer switches where it refuses to read the older ones, because somebody set both kinds."""
        return cls(
            matmul_precision=_matmul_precision(),
            convolution_tf32=_convolutions_run_tf32(),
            cudnn_benchmark=torch.backends.cudnn.benchmark,
            general_fp32_precision=torch.backends.fp32_precision,  # type: ignore[attr-defined] # no stub
            cudnn_fp32_precision=torch.backends.cudnn.fp32_precision,
        )

    @classmethod
    def of(cls, precision: Precision) -> "Switches":
        """TF32 for `tf32` alone; cuDNN searches its fastest convolutions, since the shapes of a training are fixed."""
        tf32 = precision is Precision.TF32
        return cls(
            matmul_precision="high" if tf32 else "highest",
            convolution_tf32=tf32,
            cudnn_benchmark=True,
            general_fp32_precision="none",
            cudnn_fp32_precision="none",
        )

    def apply(self) -> None:
        """The general switches go first: they are what the particular ones fall back to."""
        torch.backends.fp32_precision = self.general_fp32_precision  # type: ignore[attr-defined] # no stub
        torch.backends.cudnn.fp32_precision = self.cudnn_fp32_precision
        torch.set_float32_matmul_precision(self.matmul_precision)
        torch.backends.cudnn.allow_tf32 = self.convolution_tf32
        if _convolutions_run_tf32() is not self.convolution_tf32:
            # the general switch says otherwise: only the newer switch of convolutions can contradict it
            chosen = "tf32" if self.convolution_tf32 else "ieee"
            torch.backends.cudnn.conv.fp32_precision = chosen  # type: ignore[attr-defined] # no stub
        torch.backends.cudnn.benchmark = self.cudnn_benchmark

    @property
    def tf32(self) -> bool:
        return self.matmul_precision != "highest" or self.convolution_tf32


def _convolutions_run_tf32() -> bool:
    return bool(torch.backends.cudnn.conv.fp32_precision == "tf32")  # type: ignore[attr-defined] # no stub


def _matmul_precision() -> str:
    try:
        return torch.get_float32_matmul_precision()
    except RuntimeError:
        return "high" if torch.backends.cuda.matmul.fp32_precision == "tf32" else "highest"


@contextmanager
def restored_switches() -> Iterator[None]:
    """Whatever happens inside, the switches are as before afterwards."""
    before = Switches.now()
    try:
        yield
    finally:
        before.apply()


def autocast_for(precision: Precision, device: torch.device) -> torch.autocast | None:
    """One context to enter in every step; None where the arithmetic stays in float32."""
    dtype = AUTOCAST_DTYPES.get(precision)
    return None if dtype is None else torch.autocast(device.type, dtype=dtype)


def build_scaler(
    precision: Precision, device: torch.device, *, wanted: bool | None = None
) -> torch.amp.GradScaler | None:
    """A GradScaler for fp16, and for nothing else. `wanted` is what was asked for in words, None where nothing was.

    Raises `ValueError` for a scaler with a precision that must not have one, and for fp16 without one.
    """
    needed = precision is Precision.FP16
    if wanted is not None and wanted is not needed:
        rule = (
            "fp16 needs a GradScaler" if needed else f"{precision} has float32's range and must not have a GradScaler"
        )
        raise ValueError(f"{rule}: leave the choice to the precision")
    return torch.amp.GradScaler(device.type) if needed else None


class DtypeProbe:
    """Sees the dtypes that a real forward pass computes in: those of its layers' outputs."""

    def __init__(self) -> None:
        self.seen: set[torch.dtype] = set()
        self.has_watched = False
        """Whether it has seen the layers of a whole forward pass."""

    @contextmanager
    def watching(self, model: nn.Module) -> Iterator[None]:
        """For one forward pass."""
        hooks = [layer.register_forward_hook(self._see_output) for layer in _layers(model)]
        try:
            yield
            self.has_watched = True
        finally:
            for hook in hooks:
                hook.remove()

    def see(self, output: object) -> None:
        if isinstance(output, torch.Tensor) and output.is_floating_point():
            self.seen.add(output.dtype)

    def _see_output(self, _module: nn.Module, _inputs: object, output: object) -> None:
        self.see(output)


def _layers(model: nn.Module) -> Iterator[nn.Module]:
    """The modules without children, and the model itself.

    What a user compiled is one layer: a hook within it would become a part of the compiled code.
    """
    for name, module in model.named_modules():
        children = dict(module.named_children())
        is_layer = module is model or not children or "_orig_mod" in children
        if is_layer and "_orig_mod" not in name.split("."):
            yield module


def executed_precision(seen: set[torch.dtype], switches: Switches) -> Precision:
    """What ran: the half precision that a layer's output had, else float32 as the switches have it."""
    for precision, dtype in AUTOCAST_DTYPES.items():
        if dtype in seen:
            return precision
    return Precision.TF32 if switches.tf32 else Precision.FP32
