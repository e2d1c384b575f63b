"""Tensor cores and their like: which cards and processors have them for which precision."""

import pytest

from trainables.matrix_units import cpu_matrix_units, nvidia_tensor_cores
from trainables.specs import Precision

NONE: set[Precision] = set()
FP16 = {Precision.FP16}
ALL_THREE = {Precision.FP16, Precision.BF16, Precision.TF32}


@pytest.mark.parametrize(
    ("name", "compute_capability", "expected"),
    [
        ("Tesla P100-PCIE-16GB", (6, 0), NONE),
        ("Tesla V100-SXM2-16GB", (7, 0), FP16),
        ("Tesla T4", (7, 5), FP16),
        ("NVIDIA T4G", (7, 5), FP16),
        ("Quadro RTX 4000", (7, 5), FP16),
        ("NVIDIA GeForce RTX 2060", (7, 5), FP16),
        ("NVIDIA GeForce GTX 1660 Ti", (7, 5), NONE),
        ("NVIDIA GeForce GTX 1650", (7, 5), NONE),
        ("NVIDIA GeForce MX450", (7, 5), NONE),
        ("NVIDIA T400 4GB", (7, 5), NONE),
        ("Quadro T2000", (7, 5), NONE),
        ("NVIDIA A100-SXM4-80GB", (8, 0), ALL_THREE),
        ("NVIDIA RTX A2000", (8, 6), ALL_THREE),
        ("NVIDIA H200", (9, 0), ALL_THREE),
        ("NVIDIA B200", (10, 0), ALL_THREE),
    ],
)
def test_tensor_cores_follow_from_capability_and_the_turing_cards_without_any_from_their_names(
    name: str, compute_capability: tuple[int, int], expected: set[Precision]
) -> None:
    assert nvidia_tensor_cores(name, compute_capability) == expected


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ({"avx2", "f16c"}, NONE),
        ({"avx512_bf16"}, {Precision.BF16}),
        ({"amx_bf16", "amx_tile"}, {Precision.BF16}),
        ({"amx_bf16", "amx_fp16"}, {Precision.BF16, Precision.FP16}),
        ({"avx512_fp16"}, NONE),
        ({"asimd", "bf16"}, {Precision.BF16}),
    ],
)
def test_a_processors_matrix_units_follow_from_its_instruction_sets(flags: set[str], expected: set[Precision]) -> None:
    assert cpu_matrix_units(flags) == expected


def test_a_processor_that_names_no_instruction_set_is_not_known_to_lack_any() -> None:
    assert cpu_matrix_units(set()) is None
