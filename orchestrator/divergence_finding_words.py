"""The words for each cause of a divergence: what the replays showed, and what to do next."""

from collections.abc import Mapping

from orchestrator.findings import Evidence
from trainables.measurements import DivergenceCause
from trainables.specs import Precision

_NORM = " At the last step that was finite the gradient's norm was {gradient_norm}."
_KEEP_IN_FP32 = "keep that module in fp32 (torch.autocast with enabled=False around it)"


def divergence_words(evidence: Evidence) -> tuple[str, str]:
    """Sentence and advice, to be filled with the evidence."""
    cause = DivergenceCause(str(evidence["cause"]))
    sentence, advice = _WORDS[cause]
    if cause is DivergenceCause.PRECISION and evidence["precisions"] == Precision.FP16:
        advice = f"Use bf16, which has float32's range, or fp32; or {_KEEP_IN_FP32}."
    return sentence + (_NORM if "gradient_norm" in evidence else ""), advice


_WORDS: Mapping[DivergenceCause, tuple[str, str]] = {
    DivergenceCause.PRECISION: (
        "{trials} diverged for want of precision: replayed, the same steps stay finite in fp32, and "
        "{configuration} is first not finite in {place}.",
        f"Use fp32, or {_KEEP_IN_FP32}.",
    ),
    DivergenceCause.LOSS_SCALE: (
        "{trials} diverged by the GradScaler's scale: replayed, the same steps stay finite in fp32, and "
        "{configuration} is first not finite in {place}, with a forward pass that is finite.",
        "Gradients that overflow float16 at step after step halve the scale to nothing: use bf16, which needs "
        "no scale, or fp32.",
    ),
    DivergenceCause.COMPILE: (
        "{trials} diverged only when compiled: replayed without torch.compile, the same steps stay "
        "finite, for instance those of {configuration} from step {replayed_from_step} on.",
        "Leave compile off; TORCHDYNAMO_REPRO_AFTER=aot TORCHDYNAMO_REPRO_LEVEL=4 finds the part of the model to "
        "report to PyTorch.",
    ),
    DivergenceCause.TRAINING: (
        "{trials} diverged by the training itself, which fp32 does not survive: {configuration} is "
        "first not finite in {place}.",
        "Lower the lr (the highest among them is {lr}), warm it up, or set gradient_clip_norm. What breaks at every lr "
        "is the model's own arithmetic in that place.",
    ),
    DivergenceCause.DATA: (
        "{trials} diverged on data that is not finite: {configuration} got it in {place}.",
        "Mend or leave out these images; a division by zero while they are prepared is a usual cause.",
    ),
    DivergenceCause.NOT_REPRODUCED: (
        "{trials} diverged, and not again when replayed: {configuration} stays finite from step "
        "{replayed_from_step} on.",
        "The training does not repeat itself bit for bit on this device, or not with this model and data: run it "
        "again, and take a lower lr if it diverges now and then.",
    ),
    DivergenceCause.UNDECIDED: (
        "{trials} diverged, and could not be replayed in fp32: {configuration} is first not finite in {place}.",
        "Its note says why; run the same configuration in fp32.",
    ),
}
