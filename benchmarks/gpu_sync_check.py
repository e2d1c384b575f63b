"""No training step waits for the GPU: torch raises where one would, in every precision, with clipping and without.

Part of `gpu_check.sh`. The last line says what was found; exit code 1 where a step waited, 2 with no GPU.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

from trainables.batch_placement import BatchPlacement
from trainables.image_sources import TensorImages
from trainables.loading import TrainingBatches
from trainables.precision import Switches, restored_switches
from trainables.specs import CompileMode, MeasurementProtocol, Precision, TrainingConfig
from trainables.timing import DeviceClock, WindowTimer
from trainables.training import Training

WARM_STEPS = 4
STEPS = 300
"""More than the losses that are kept apart before they are stacked."""
BATCH_SIZE = 64


@contextmanager
def refusing_to_wait(device: torch.device) -> Iterator[None]:
    """Inside, an operation that waits for the GPU raises. On a CPU nothing is waited for."""
    if device.type == "cuda":
        torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        if device.type == "cuda":
            torch.cuda.set_sync_debug_mode("default")


def waiting_step(precision: Precision, clip_norm: float | None, *, device: torch.device, steps: int) -> str | None:
    """What waited in so many steps after the first few; None where nothing did."""
    config = TrainingConfig(
        precision=precision,
        batch_size=BATCH_SIZE,
        compile=CompileMode.OFF,
        lr=1e-3,
        num_workers=0,
        gradient_clip_norm=clip_norm,
    )
    placement = BatchPlacement(device, channels_last=False)
    images = torch.randn(BATCH_SIZE * (steps + WARM_STEPS), 1, 28, 28)
    labels = torch.randint(10, (len(images),))
    batches = TrainingBatches(TensorImages(images, labels), config=config, seed=0, pin_memory=placement.pin_memory)
    model = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 26 * 26, 10)).to(device)
    clock = DeviceClock.of(device)
    timer = WindowTimer(MeasurementProtocol(epochs=1), clock)
    training = Training(model, config, batches, placement=placement, clock=clock, intervals=1, num_classes=10)
    timer.resume()
    training.train_to(WARM_STEPS, timer)
    try:
        with refusing_to_wait(device):
            training.train_to(WARM_STEPS + steps, timer)
    except RuntimeError as error:
        return str(error).splitlines()[0]
    finally:
        batches.close()
    return None


def main() -> int:
    if not torch.cuda.is_available():
        print("no CUDA GPU here")
        return 2
    faults = []
    for precision in Precision:
        for clip_norm in (None, 1.0):
            with restored_switches():
                Switches.of(precision).apply()
                fault = waiting_step(precision, clip_norm, device=torch.device("cuda"), steps=STEPS)
            name = f"{precision}{'' if clip_norm is None else ' clipped'}"
            print(f"{name}: {fault or 'no step waited'}", flush=True)
            faults += [f"{name}: {fault}"] if fault else []
    print("; ".join(faults) or f"{STEPS} steps in each precision, with clipping and without: none waited")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
