"""What arithmetic a trial ran in, and how its GradScaler fared: the account of its precision so far."""

import torch

from trainables.capability import Capability, has_matrix_units, is_emulated
from trainables.measurements import PrecisionMeasurement
from trainables.precision import Switches, executed_precision
from trainables.specs import Precision


def precision_measurement(
    asked: Precision,
    capability: Capability,
    *,
    seen: set[torch.dtype],
    switches: Switches,
    loss_scale: float | None,
    skipped_steps: int | None,
    before: PrecisionMeasurement | None,
) -> PrecisionMeasurement:
    """`before` is the account after the interval before, None after the first; `seen` are dtypes of real outputs."""
    earlier = () if before is None else before.loss_scale_by_epoch
    return PrecisionMeasurement(
        executed_precision=executed_precision(seen, switches).value,
        skipped_steps=skipped_steps,
        final_loss_scale=loss_scale,
        loss_scale_by_epoch=earlier if loss_scale is None else (*earlier, loss_scale),
        emulated=is_emulated(asked, capability),
        tensor_cores=has_matrix_units(asked, capability),
        matmul_precision=switches.matmul_precision,
        convolution_tf32=switches.convolution_tf32,
        cudnn_benchmark=switches.cudnn_benchmark,
    )
