"""What cannot run is known, with a sentence, before anything is trained."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from trainables.capability import (
    Capability,
    cpu_flags,
    cxx_problem,
    device_facts,
    emulation_note,
    find_capability,
    nvidia_capability,
    trial_device,
    unsupported_reason,
)
from trainables.errors import InputError
from trainables.specs import CompileMode, Precision, TrainingConfig

CARDS = {
    "Tesla P100": (6, 0),
    "Tesla V100": (7, 0),
    "Tesla T4": (7, 5),
    "NVIDIA A100": (8, 0),
    "NVIDIA L4": (8, 9),
    "NVIDIA H200": (9, 0),
    "NVIDIA B200": (10, 0),
}
AMPERE_ON = {"NVIDIA A100", "NVIDIA L4", "NVIDIA H200", "NVIDIA B200"}

CPU = Capability(device_type="cpu", device="cpu", native_bf16=False, native_fp16=False, native_tf32=False)


def config(precision: Precision, compile_mode: CompileMode = CompileMode.OFF) -> TrainingConfig:
    return TrainingConfig(precision=precision, batch_size=64, compile=compile_mode, lr=1e-3, num_workers=0)


def card(name: str) -> Capability:
    return nvidia_capability(name, CARDS[name], has_triton=True)


@pytest.mark.parametrize("name", CARDS)
@pytest.mark.parametrize("precision", [Precision.BF16, Precision.TF32])
def test_bf16_and_tf32_need_compute_capability_8(name: str, precision: Precision) -> None:
    """B11: older cards say that they support bf16, and emulate it."""
    reason = unsupported_reason(config(precision), card(name))
    assert (reason is None) == (name in AMPERE_ON)


def test_a_refusal_says_what_the_card_is_and_what_to_choose() -> None:
    assert unsupported_reason(config(Precision.BF16), card("Tesla T4")) == (
        "Tesla T4 (compute capability 7.5) would emulate bf16, which is native on NVIDIA GPUs from compute capability "
        "8.0 (Ampere) on: choose fp16 or fp32"
    )


@pytest.mark.parametrize("name", CARDS)
@pytest.mark.parametrize("precision", [Precision.FP32, Precision.FP16])
def test_every_card_runs_fp32_and_fp16(name: str, precision: Precision) -> None:
    assert unsupported_reason(config(precision), card(name)) is None


def test_compile_needs_capability_7_and_triton() -> None:
    compiled = config(Precision.FP32, CompileMode.DEFAULT)
    assert "compute capability 7.0 or more" in (unsupported_reason(compiled, card("Tesla P100")) or "")
    without = nvidia_capability("NVIDIA A100", (8, 0), has_triton=False)
    assert "install it, or choose compile: off" in (unsupported_reason(compiled, without) or "")
    assert unsupported_reason(compiled, card("NVIDIA A100")) is None
    assert unsupported_reason(config(Precision.FP32), without) is None


@pytest.mark.parametrize("precision", [Precision.FP32, Precision.FP16, Precision.BF16])
def test_a_cpu_runs_half_precision_whether_native_or_not(precision: Precision) -> None:
    assert unsupported_reason(config(precision), CPU) is None


def test_a_cpu_has_no_tf32() -> None:
    assert unsupported_reason(config(Precision.TF32), CPU) == (
        "cpu has no TF32, which is native on NVIDIA GPUs from compute capability 8.0 (Ampere) on: choose fp32"
    )


def test_emulation_on_a_cpu_is_said() -> None:
    assert emulation_note(Precision.BF16, CPU) == (
        "bf16 is emulated on this cpu, which has no instructions for it: it is slow, and gradients of convolutions are "
        "summed in bf16 itself, which is less exact"
    )
    assert emulation_note(Precision.BF16, replace(CPU, native_bf16=True)) is None
    assert emulation_note(Precision.FP32, CPU) is None


def test_no_compiler_is_found_before_compiling(monkeypatch: pytest.MonkeyPatch) -> None:
    """B16: torch itself notices at the first call of the compiled model."""
    monkeypatch.setenv("CXX", "/nonexistent/g++")
    reason = unsupported_reason(config(Precision.FP32, CompileMode.DEFAULT), find_capability(torch.device("cpu")))
    assert reason == (
        "torch.compile on a CPU needs a C++ compiler, and there is no '/nonexistent/g++': "
        "install g++ or point CXX at one, or choose compile: off"
    )


def test_a_compiler_with_arguments_is_found_by_its_first_word() -> None:
    assert cxx_problem(f"{sys.executable} -m compiler") is None
    assert cxx_problem("") is not None


def test_a_compiler_that_is_not_on_the_path_is_no_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    assert find_capability(torch.device("cpu")).compile_problem is not None


def test_instruction_sets_are_read_as_the_kernel_names_them() -> None:
    assert cpu_flags("processor : 0\nflags\t\t: fpu avx512_bf16 sse\nflags : other\n") == {"fpu", "avx512_bf16", "sse"}
    assert cpu_flags("Features\t: fp asimd bf16\n") == {"fp", "asimd", "bf16"}
    assert cpu_flags("") == frozenset()


def test_a_device_that_is_not_here_is_wrong_input() -> None:
    with pytest.raises(InputError, match=r"device tpu:7: there is no such device here; there is .*cpu"):
        trial_device("tpu:7")
    assert trial_device("cpu") == torch.device("cpu")


def test_the_facts_of_a_cpu_name_torch_and_nothing_of_a_gpu() -> None:
    facts = device_facts(torch.device("cpu"))
    assert (facts.device, facts.compute_capability, facts.cuda_version) == ("cpu", None, None)
    assert facts.torch_version == torch.__version__
    assert type(facts.torch_version) is str


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_the_facts_of_a_gpu_name_it() -> None:
    facts = device_facts()
    assert facts.device == torch.cuda.get_device_name()
    assert facts.compute_capability == "{}.{}".format(*torch.cuda.get_device_capability())
    assert facts.driver_version is not None
