"""The words for half precision that gains nothing: what the numbers show of each cause, and what to do next."""

from collections.abc import Mapping

from orchestrator.findings import Evidence, FindingKind
from orchestrator.half_precision import NoGainCause

_HEADLINES: Mapping[FindingKind, str] = {
    FindingKind.HALF_PRECISION_SLOWER: (
        "{knob_value} was slower than fp32 in {count} of {pairs} matched pairs: {speedup} the speed, "
        "{worst_speedup} at worst."
    ),
    FindingKind.HALF_PRECISION_NO_GAIN: (
        "{knob_value} was not clearly faster than fp32 in {count} of {pairs} matched pairs: {speedup} the speed "
        "[{speedup_low}–{speedup_high}] in the middle one."
    ),
}

_CAUSES: Mapping[NoGainCause, tuple[str, str]] = {
    NoGainCause.EMULATED: (
        "It is emulated: this {device} has no instructions for it.",
        "Use fp32 on this device.",
    ),
    NoGainCause.NO_TENSOR_CORES: (
        "This {device} has no matrix units for it.",
        "It saves memory here, not time; a device with tensor cores for the type would gain.",
    ),
    NoGainCause.DATA_BOUND: (
        "Training waits for data: {end_to_end_rate} images/s, where compute alone gives {compute_rate}{compute_gain}.",
        "Raise num_workers, or make the loading cheaper, before comparing precisions.",
    ),
    NoGainCause.LAUNCH_BOUND: (
        "The device waits for the host, which needs {host_fraction} of the time of a step to launch its kernels.",
        "Try compile: reduce-overhead, or a larger batch_size.",
    ),
    NoGainCause.BATCH_TOO_SMALL: (
        "Batch size {batch_size} does not fill the device: at {larger_batch_size} there are {batch_speedup} as many "
        "images/s.",
        "Compare precisions at a larger batch_size.",
    ),
    NoGainCause.NONE_SHOWN: (
        "None of the known causes shows in the numbers{not_known_words}.",
        "See whether channels_last changes it, and keep fp32 where it does not.",
    ),
}


def half_precision_words(kind: FindingKind, evidence: Evidence) -> tuple[str, str]:
    """Sentence and advice, still with the names of the evidence in braces."""
    causes = [NoGainCause(cause) for cause in str(evidence["causes"]).split()]
    gain = ", {compute_speedup} that of fp32" if "compute_speedup" in evidence else ""
    not_known = "; not known: {not_known}" if evidence["not_known"] else ""
    said = [_CAUSES[cause][0] for cause in causes]
    sentence = " ".join([_HEADLINES[kind], *said])
    sentence = sentence.replace("{compute_gain}", gain).replace("{not_known_words}", not_known)
    return sentence, " ".join(_CAUSES[cause][1] for cause in causes)
