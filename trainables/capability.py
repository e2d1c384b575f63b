"""The device's facts, and why it cannot run a configuration: found before anything is trained."""

import os
import re
import shlex
import shutil
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import torch

from trainables.errors import InputError
from trainables.matrix_units import cpu_matrix_units, nvidia_tensor_cores
from trainables.outcomes import DeviceFacts
from trainables.specs import CompileMode, Precision, TrainingConfig

TENSOR_FLOAT_CAPABILITY = (8, 0)
"""NVIDIA's Ampere: the first with native bfloat16 and TF32 (CUDA C++ Programming Guide, compute capability 8.x)."""

_DRIVER_FILE = Path("/proc/driver/nvidia/version")
_CPU_FILE = Path("/proc/cpuinfo")
_BF16_FLAGS = frozenset({"avx512_bf16", "amx_bf16", "bf16"})
_FP16_FLAGS = frozenset({"avx512_fp16", "amx_fp16", "asimdhp"})
"""Arithmetic in half precision, as the Linux kernel names it on x86 and on ARM (`f16c` only converts)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capability:
    """What a device and its toolchain can run natively. Emulation does not count."""

    device_type: str
    """torch's: `cpu`, `cuda`, `xpu`."""
    device: str
    """The GPU's model name, or `cpu`."""
    compute_capability: str | None = None
    """`9.0`; `gfx942` on ROCm; None elsewhere."""
    native_bf16: bool
    native_fp16: bool
    native_tf32: bool
    matrix_units: frozenset[Precision] | None = None
    """Precisions that it has tensor cores or like units for; None where that is not known."""
    compile_problem: str | None = None
    """Why `torch.compile` cannot work here, with the remedy; None where it can."""


def trial_device(name: str | None) -> torch.device:
    """`name` as torch takes it (`cpu`, `cuda`, `cuda:1`); without one the current accelerator, else the CPU.

    Raises `InputError` for a device that is not here.
    """
    accelerator = torch.accelerator.current_accelerator(check_available=True)
    if accelerator is None:
        here, usual = ["cpu"], "cpu"
    else:
        here = [*(f"{accelerator.type}:{index}" for index in range(torch.accelerator.device_count())), "cpu"]
        usual = f"{accelerator.type}:{torch.accelerator.current_device_index()}"
    wanted = usual if name is None or (accelerator is not None and name == accelerator.type) else name
    if wanted not in here:
        raise InputError(f"device {name}: there is no such device here; there is {', '.join(here)}")
    return torch.device(wanted)


def unsupported_reason(config: TrainingConfig, capability: Capability) -> str | None:
    """A sentence with the remedy, None where the configuration can run.

    On a CPU half precision may be emulated (slow, but what was asked): `emulation_note`. On a GPU it is refused.
    """
    if config.precision is Precision.TF32 and not capability.native_tf32:
        return f"{_described(capability)} has no TF32, which is {_ampere()}: choose fp32"
    if capability.device_type != "cpu":
        if config.precision is Precision.BF16 and not capability.native_bf16:
            return f"{_described(capability)} would emulate bf16, which is {_ampere()}: choose fp16 or fp32"
        if config.precision is Precision.FP16 and not capability.native_fp16:
            return f"{_described(capability)} is not known to compute in fp16: choose fp32"
    if config.compile is not CompileMode.OFF and capability.compile_problem is not None:
        return capability.compile_problem
    return None


def emulation_note(precision: Precision, capability: Capability) -> str | None:
    """The finding that a CPU computes a half precision without instructions for it."""
    if not is_emulated(precision, capability):
        return None
    return (
        f"{precision} is emulated on this {capability.device}, which has no instructions for it: it is slow, and "
        f"gradients of convolutions are summed in {precision} itself, which is less exact"
    )


def is_emulated(precision: Precision, capability: Capability) -> bool:
    native = {Precision.FP16: capability.native_fp16, Precision.BF16: capability.native_bf16}
    return not native.get(precision, True)


def has_matrix_units(precision: Precision, capability: Capability) -> bool | None:
    """None where it is not known."""
    return None if capability.matrix_units is None else precision in capability.matrix_units


def find_capability(device: torch.device) -> Capability:
    if device.type == "cpu":
        return _cpu_capability()
    if device.type == "cuda":
        return _rocm_capability(device) if torch.version.hip else _cuda_capability(device)
    return _other_capability(device)


def device_facts(device: torch.device | None = None) -> DeviceFacts:
    """`device` as in `trial_device`; without one, the device that a trial of this process would run on."""
    return facts_of(find_capability(device or trial_device(None)))


def facts_of(capability: Capability) -> DeviceFacts:
    return DeviceFacts(
        device=capability.device,
        compute_capability=capability.compute_capability,
        torch_version=str(torch.__version__),
        cuda_version=_runtime_version() if capability.device_type == "cuda" else None,
        driver_version=_driver_version() if capability.device_type == "cuda" else None,
    )


def nvidia_capability(device: str, compute_capability: tuple[int, int], *, has_triton: bool) -> Capability:
    """A pure rule, so that cards that are not here can be asked about."""
    major, minor = compute_capability
    tensor_float = compute_capability >= TENSOR_FLOAT_CAPABILITY
    return Capability(
        device_type="cuda",
        device=device,
        compute_capability=f"{major}.{minor}",
        native_bf16=tensor_float,
        native_fp16=True,
        native_tf32=tensor_float,
        matrix_units=nvidia_tensor_cores(device, compute_capability),
        compile_problem=_triton_problem(compute_capability, has_triton=has_triton),
    )


def cxx_problem(compiler: str) -> str | None:
    """Why `torch.compile` cannot build for a CPU; `compiler` is the command that torch would start."""
    words = shlex.split(compiler)
    if words and shutil.which(words[0]) is not None:
        return None
    return (
        f"torch.compile on a CPU needs a C++ compiler, and there is no {compiler!r}: "
        "install g++ or point CXX at one, or choose compile: off"
    )


def cpu_flags(cpuinfo: str) -> frozenset[str]:
    """The instruction sets of the first core in the text of Linux's `/proc/cpuinfo`; none where it lists none."""
    for line in cpuinfo.splitlines():
        name, _, value = line.partition(":")
        if name.strip() in ("flags", "Features"):
            return frozenset(value.split())
    return frozenset()


def _cpu_capability() -> Capability:
    flags = cpu_flags(_read(_CPU_FILE))
    return Capability(
        device_type="cpu",
        device="cpu",
        native_bf16=not flags or not flags.isdisjoint(_BF16_FLAGS),  # unknown is not called emulated
        native_fp16=not flags or not flags.isdisjoint(_FP16_FLAGS),
        native_tf32=False,
        matrix_units=cpu_matrix_units(flags),
        # the same search as torch._inductor.config.cpp.cxx
        compile_problem=cxx_problem(os.environ.get("CXX", "clang++" if sys.platform == "darwin" else "g++")),
    )


def _cuda_capability(device: torch.device) -> Capability:
    return nvidia_capability(
        torch.cuda.get_device_name(device),
        torch.cuda.get_device_capability(device),
        has_triton=find_spec("triton") is not None,
    )


def _rocm_capability(device: torch.device) -> Capability:
    return Capability(
        device_type="cuda",
        device=torch.cuda.get_device_name(device),
        compute_capability=torch.cuda.get_device_properties(device).gcnArchName.partition(":")[0],
        native_bf16=torch.cuda.is_bf16_supported(including_emulation=False),
        native_fp16=True,
        native_tf32=False,
        compile_problem=None if find_spec("triton") else _NO_TRITON,
    )


def _other_capability(device: torch.device) -> Capability:
    """An Intel GPU; of any further kind of device nothing but float32 is known to be native."""
    is_xpu = device.type == "xpu"
    return Capability(
        device_type=device.type,
        device=torch.xpu.get_device_name(device) if is_xpu else device.type,
        native_bf16=is_xpu and torch.xpu.is_bf16_supported(including_emulation=False),
        native_fp16=is_xpu,
        native_tf32=False,
        compile_problem=None if find_spec("triton") else _NO_TRITON,
    )


_NO_TRITON = (
    "torch.compile on a GPU needs the package triton, which is not installed: install it, or choose compile: off"
)

_TRITON_CAPABILITY = (7, 0)


def _triton_problem(compute_capability: tuple[int, int], *, has_triton: bool) -> str | None:
    if compute_capability < _TRITON_CAPABILITY:
        found = ".".join(map(str, compute_capability))
        return f"torch.compile needs a GPU of compute capability 7.0 or more, this one has {found}: choose compile: off"
    return None if has_triton else _NO_TRITON


def _ampere() -> str:
    return "native on NVIDIA GPUs from compute capability 8.0 (Ampere) on"


def _described(capability: Capability) -> str:
    if capability.compute_capability is None:
        return capability.device
    return f"{capability.device} (compute capability {capability.compute_capability})"


def _runtime_version() -> str | None:
    return f"hip {torch.version.hip}" if torch.version.hip else torch.version.cuda


def _driver_version() -> str | None:
    """From the NVIDIA kernel module's own file; None where there is none to read."""
    found = re.search(r"\b\d+\.\d+(\.\d+)?\b", _read(_DRIVER_FILE).partition("\n")[0])
    return found.group() if found else None


def _read(path: Path) -> str:
    """Nothing where the system has no such file."""
    try:
        return path.read_text()
    except OSError:
        return ""
