"""What the replay of a diverged trial showed, in words: the clause of its status reason."""

from trainables.measurements import WHOLE_MODEL, DivergenceCause, DivergenceDiagnosis, NonFiniteIn
from trainables.specs import Precision


def divergence_clause(diagnosis: DivergenceDiagnosis, precision: Precision) -> str:
    """`first not finite in the output of layers.3 at step 37 in fp16; the same steps stay finite in fp32`."""
    if diagnosis.nonfinite_in is None:
        without = " without torch.compile" if diagnosis.cause is DivergenceCause.COMPILE else ""
        return f"replayed from step {diagnosis.replayed_from_step}, the same steps stay finite{without}"
    first = f"first not finite in {broken_place(diagnosis)} in {precision}"
    if diagnosis.cause is DivergenceCause.DATA:
        return f"first not finite in {broken_place(diagnosis)}"
    if diagnosis.fp32_survives:
        return f"{first}; the same steps stay finite in fp32"
    if diagnosis.fp32_nonfinite_step is not None and precision is not Precision.FP32:
        return f"{first}; in fp32 at step {diagnosis.fp32_nonfinite_step}"
    return first


def broken_place(diagnosis: DivergenceDiagnosis) -> str:
    """`the output of layers.3 at step 37`: the value that was not finite first."""
    when = f"in the evaluation after step {diagnosis.first_nonfinite_step}"
    return f"{_value(diagnosis)} {when if diagnosis.in_evaluation else f'at step {diagnosis.first_nonfinite_step}'}"


def _value(diagnosis: DivergenceDiagnosis) -> str:
    name = diagnosis.first_nonfinite_module
    match diagnosis.nonfinite_in:
        case NonFiniteIn.INPUT:
            numbers = ", ".join(map(str, diagnosis.nonfinite_images))
            return f"the batch ({'validation' if diagnosis.in_evaluation else 'training'} images {numbers})"
        case NonFiniteIn.FORWARD:
            return "the output of the model itself" if name == WHOLE_MODEL else f"the output of {name}"
        case NonFiniteIn.GRADIENT:
            return f"the gradient of {name}"
        case NonFiniteIn.WEIGHTS:
            return f"the new weights {name}"
        case _:
            return "the loss"
