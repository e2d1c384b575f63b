"""A trial's parts built: data, batches, the model on its device, all as a checkpoint left them where there is one."""

from contextlib import ExitStack
from dataclasses import dataclass

import torch

from trainables.batch_placement import BatchPlacement
from trainables.checkpoints import Checkpoint
from trainables.datasets import load_image_data
from trainables.image_data import ImageData
from trainables.intervals import IntervalPlan
from trainables.loading import EvaluationBatches, TrainingBatches
from trainables.models import build_model
from trainables.precision import Switches
from trainables.random_state import restore_generators, seed_generators
from trainables.specs import TrialSpec
from trainables.timing import DeviceClock, WindowTimer
from trainables.training import Training


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialParts:
    data: ImageData
    to_device: BatchPlacement
    batches: TrainingBatches
    validation: EvaluationBatches
    plan: IntervalPlan
    training: Training
    timer: WindowTimer


def build_parts(
    spec: TrialSpec,
    checkpoint: Checkpoint | None,
    *,
    device: torch.device,
    clock: DeviceClock,
    resources: ExitStack,
) -> TrialParts:
    """Raises `InputError`, or whatever the user's model and data set raise. `resources` ends the loaders' workers."""
    data = load_image_data(spec.dataset, spec.dataset_args, num_classes=spec.num_classes)
    to_device = BatchPlacement(device, channels_last=spec.config.channels_last)
    batches = TrainingBatches(data.train, config=spec.config, seed=spec.training_seed, pin_memory=to_device.pin_memory)
    resources.callback(batches.close)
    validation = EvaluationBatches(
        data.validation,
        batch_size=spec.config.batch_size,  # a larger one may not fit where training does
        num_workers=spec.config.num_workers,
        seed=spec.training_seed,
        pin_memory=to_device.pin_memory,
    )
    resources.callback(validation.close)
    plan = IntervalPlan.of(spec.protocol, steps_per_epoch=batches.steps_per_epoch)
    training = build_training(spec, checkpoint, data, batches, plan, to_device=to_device, clock=clock)
    return TrialParts(
        data=data,
        to_device=to_device,
        batches=batches,
        validation=validation,
        plan=plan,
        training=training,
        timer=_build_timer(spec, checkpoint, clock, batches=batches, training=training),
    )


def build_training(
    spec: TrialSpec,
    checkpoint: Checkpoint | None,
    data: ImageData,
    batches: TrainingBatches,
    plan: IntervalPlan,
    *,
    to_device: BatchPlacement,
    clock: DeviceClock,
) -> Training:
    """A new model and its training, with the process's switches and generators, as at its start or at `checkpoint`."""
    model = _build_model_on_device(spec, data, to_device.device)
    training = Training(
        model,
        spec.config,
        batches,
        placement=to_device,
        clock=clock,
        intervals=plan.schedule_intervals,
        num_classes=data.num_classes,
    )
    if checkpoint is not None:
        training.restore(checkpoint)
        restore_generators(checkpoint.generators, to_device.device)
    return training


def _build_model_on_device(spec: TrialSpec, data: ImageData, device: torch.device) -> torch.nn.Module:
    """The weights follow from the seed alone: they are drawn on the CPU, whatever the device."""
    seed_generators(spec.training_seed)
    model = build_model(spec.model, spec.model_args, num_classes=data.num_classes, input_shape=data.input_shape)
    memory_format = torch.channels_last if spec.config.channels_last else torch.preserve_format
    model.to(device, memory_format=memory_format)  # type: ignore[call-overload] # torch's stub lacks the pair
    model.train()
    Switches.of(spec.config.precision).apply()  # after the user's code, which may have set them at import
    return model


def _build_timer(
    spec: TrialSpec,
    checkpoint: Checkpoint | None,
    clock: DeviceClock,
    *,
    batches: TrainingBatches,
    training: Training,
) -> WindowTimer:
    disturbances = training.compiler_work.read
    if checkpoint is None:
        return WindowTimer(spec.protocol, clock, step_multiple=batches.bunch, disturbances=disturbances)
    return WindowTimer(
        spec.protocol,
        clock,
        step_multiple=batches.bunch,
        images=checkpoint.window_images,
        seconds=checkpoint.window_seconds,
        merges=checkpoint.window_merges,
        disturbances=disturbances,
    )
