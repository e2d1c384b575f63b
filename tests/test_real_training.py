"""Real data: accuracies agree with recorded ones, and the precisions with one another."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.trial_building import ONE_THREAD
from trainables.capability import find_capability
from trainables.outcomes import TrialStatus
from trainables.specs import CompileMode, MeasurementProtocol, Precision, TrainingConfig, TrialSpec
from trainables.trial import run_trial

pytestmark = pytest.mark.slow

HALVES = [Precision.BF16, Precision.FP16]
TOLERANCE = 0.005
"""Between precisions, with the seed held."""

REFERENCE = {Precision.FP32: 0.7749, Precision.BF16: 0.7757, Precision.FP16: 0.7735}
"""FashionMNIST's first 2,560 training images, 4 epochs of a schedule of 20, batch 128, lr 3e-4, a CNN of 421,642
parameters, validated on 10,000 images: recorded with another program.
"""
REFERENCE_TOLERANCE = 0.015


def accuracy(precision: Precision, *, model: str, protocol: dict[str, Any], **task: Any) -> float:
    knobs = {name: task.pop(name) for name in ("batch_size", "lr")}
    spec = TrialSpec(
        config=TrainingConfig(precision=precision, compile=CompileMode.OFF, num_workers=0, **knobs),
        model=model,
        protocol=MeasurementProtocol(windows=0, **protocol),
        **task,
    )
    outcome = run_trial(spec, environment=ONE_THREAD)
    assert outcome.status is TrialStatus.COMPLETED, outcome.status_reason
    assert outcome.precision is not None
    assert outcome.precision.executed_precision == precision.value
    assert outcome.accuracy is not None
    return outcome.accuracy


def digits_accuracy(precision: Precision) -> float:
    return accuracy(
        precision, model="digits_cnn", dataset="digits", protocol={"epochs": 6}, batch_size=64, lr=3e-3, seed=0
    )


@pytest.fixture(scope="module")
def fp32_on_digits() -> float:
    return digits_accuracy(Precision.FP32)


def test_digits_are_learned(fp32_on_digits: float) -> None:
    assert fp32_on_digits > 0.97


@pytest.mark.parametrize("precision", HALVES)
def test_half_precision_learns_digits_as_well_as_fp32(fp32_on_digits: float, precision: Precision) -> None:
    assert digits_accuracy(precision) == pytest.approx(fp32_on_digits, abs=TOLERANCE)


@pytest.fixture(scope="module")
def fashion_mnist(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fashion_mnist")
    subprocess.run([sys.executable, str(shared / "data" / "prepare.py"), str(folder)], check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def fp32_on_fashion(fashion_mnist: Path) -> float:
    return fashion_accuracy(Precision.FP32, fashion_mnist)


def fashion_accuracy(precision: Precision, root: Path) -> float:
    return accuracy(
        precision,
        model="fashion_cnn",
        dataset="fashion_mnist",
        dataset_args={"root": str(root), "train_limit": 2560},
        protocol={"epochs": 4, "schedule_epochs": 20},
        batch_size=128,
        lr=3e-4,
        seed=0,
    )


def test_fp32_agrees_with_the_reference_on_fashion_mnist(fp32_on_fashion: float) -> None:
    assert fp32_on_fashion == pytest.approx(REFERENCE[Precision.FP32], abs=REFERENCE_TOLERANCE)


@pytest.mark.parametrize("precision", HALVES)
def test_half_precision_agrees_with_the_reference_and_with_fp32(
    fashion_mnist: Path, fp32_on_fashion: float, precision: Precision
) -> None:
    capability = find_capability(torch.device("cpu"))
    if not {Precision.BF16: capability.native_bf16, Precision.FP16: capability.native_fp16}[precision]:
        pytest.skip(f"this CPU emulates {precision}: convolutions take minutes, and torch sums them in {precision}")
    half = fashion_accuracy(precision, fashion_mnist)
    assert half == pytest.approx(REFERENCE[precision], abs=REFERENCE_TOLERANCE)
    assert half == pytest.approx(fp32_on_fashion, abs=TOLERANCE)
