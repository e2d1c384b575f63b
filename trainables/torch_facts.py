"""What torch can do on this machine: its GPUs, each tried with a small computation, and its CPU."""

import torch

from trainables.capability import Capability, facts_of, find_capability
from trainables.node_facts import GpuFacts, TorchFacts
from trainables.specs import Precision


def find_torch_facts() -> TorchFacts:
    """Opens every GPU: it costs some hundred MiB of memory on each until the process ends."""
    accelerator = torch.accelerator.current_accelerator(check_available=True)
    cpu = find_capability(torch.device("cpu"))
    return TorchFacts(
        version=str(torch.__version__),
        cuda_version=f"hip {torch.version.hip}" if torch.version.hip else torch.version.cuda,
        accelerator=accelerator.type if accelerator else None,
        accelerator_fault=None if accelerator else _cuda_fault(),
        cpu_native_precisions=native_precisions(cpu),
        cpu_compile_problem=cpu.compile_problem,
        gpus=_all_gpus(accelerator) if accelerator else (),
    )


def native_precisions(capability: Capability) -> tuple[str, ...]:
    """Those that the device has instructions for; fp32 every device has."""
    native = {
        Precision.FP32: True,
        Precision.TF32: capability.native_tf32,
        Precision.FP16: capability.native_fp16,
        Precision.BF16: capability.native_bf16,
    }
    return tuple(precision.value for precision, there in native.items() if there)


def _all_gpus(accelerator: torch.device) -> tuple[GpuFacts, ...]:
    return tuple(_gpu_facts(accelerator.type, index) for index in range(torch.accelerator.device_count()))


def _cuda_fault() -> str | None:
    """What torch says of why it finds no GPU; None of a build that looks for none."""
    if torch.version.cuda is None and torch.version.hip is None:
        return None
    try:
        torch.cuda.init()  # type: ignore[no-untyped-call]
    except Exception as error:  # noqa: BLE001 - whatever the driver says is the answer
        return _words(error)
    return None


def _gpu_facts(kind: str, index: int) -> GpuFacts:
    device = torch.device(kind, index)
    try:
        capability = find_capability(device)
    except Exception as error:  # noqa: BLE001 - as above
        return GpuFacts(index=index, name=f"{kind}:{index}", fault=_words(error))
    fault, free, total = _tried(device)
    return GpuFacts(
        index=index,
        name=capability.device,
        compute_capability=facts_of(capability).compute_capability,
        memory_bytes=total,
        free_memory_bytes=free,
        native_precisions=native_precisions(capability),
        compile_problem=capability.compile_problem,
        fault=fault,
    )


def _tried(device: torch.device) -> tuple[str | None, int | None, int | None]:
    """What went wrong with a small computation, and the free and whole memory in bytes before it."""
    free = total = None
    try:
        free, total = torch.accelerator.get_memory_info(device)
        ones = torch.ones(64, 64, device=device)
        if (total_sum := float((ones @ ones).sum())) != 64**3:
            return f"it computed {total_sum:g} where {64**3} is right", free, total
    except Exception as error:  # noqa: BLE001 - as above
        return _words(error), free, total
    return None, free, total


def _words(error: Exception) -> str:
    return str(error) or type(error).__name__
