"""Which precisions a device has matrix units for: a pure rule by its name, capability and instruction sets."""

import re
from collections.abc import Set

from trainables.specs import Precision

TENSOR_CORES_FROM = {Precision.FP16: (7, 0), Precision.BF16: (8, 0), Precision.TF32: (8, 0)}
"""NVIDIA compute capabilities: Volta's tensor cores take float16, Ampere's bfloat16 and TF32 too (CUDA C++ Programming
Guide, compute capabilities 7.x and 8.x). No card has them for IEEE float32.
"""

_TURING = (7, 5)
_TURING_WITHOUT = re.compile(r"\bGTX 16\d\d|\bMX[45]50\b|\bT(400|500|550|600|1000|1200|2000)\b")
"""Cards of Turing's chips TU116 and TU117, which have plain float16 units in the place of tensor cores (NVIDIA Turing
GPU Architecture, and the specifications of the GTX 16 series, MX450 and MX550, T400 to T1200 and Quadro T1000, T2000).
"""

CPU_MATRIX_FLAGS = {Precision.FP16: {"amx_fp16"}, Precision.BF16: {"amx_bf16", "avx512_bf16", "bf16"}}
"""Matrix and dot-product instructions as the Linux kernel names them on x86 and on ARM: they do more multiplications an
instruction than float32 gets (Intel 64 and IA-32 Architectures Manual; Arm A64, BFMMLA and BFDOT).
"""


def nvidia_tensor_cores(device: str, compute_capability: tuple[int, int]) -> frozenset[Precision]:
    if compute_capability == _TURING and _TURING_WITHOUT.search(device):
        return frozenset()
    return frozenset(precision for precision, first in TENSOR_CORES_FROM.items() if compute_capability >= first)


def cpu_matrix_units(flags: Set[str]) -> frozenset[Precision] | None:
    """None where the instruction sets are not known."""
    if not flags:
        return None
    return frozenset(precision for precision, names in CPU_MATRIX_FLAGS.items() if not names.isdisjoint(flags))
