"""The words for each kind of finding: what the numbers show, and what to do next."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from orchestrator.compile_finding_words import COMPILE_WORDS
from orchestrator.data_finding_words import DATA_FORMATS, DATA_REMEDIES, DATA_WORDS
from orchestrator.divergence_finding_words import divergence_words
from orchestrator.findings import Finding, FindingKind
from orchestrator.half_precision_words import half_precision_words
from orchestrator.machine_finding_words import MACHINE_WORDS
from orchestrator.wording import number, one_line, percent, plural, points, ratio, seconds, signed_points, some_of

MOST_TRIALS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingWords:
    sentence: str
    advice: str
    """Empty where there is nothing to do."""
    trials: str
    """Labels of the trials that it is about; empty where it is about all."""


def finding_words(finding: Finding) -> FindingWords:
    sentence, advice = _templates(finding)
    evidence = {name: _formatted(name, value) for name, value in finding.evidence.items()}
    count = finding.evidence.get("count", 0)
    evidence["trials"] = plural(int(count), "trial")
    evidence["configurations_counted"] = plural(int(count), "configuration")
    labels = list(dict.fromkeys(result.outcome.spec.label for result in finding.results))
    return FindingWords(
        sentence=sentence.format_map(evidence),
        advice=advice.format_map(evidence),
        trials=some_of(labels, MOST_TRIALS),
    )


def _templates(finding: Finding) -> tuple[str, str]:
    if finding.kind is FindingKind.DIVERGED:
        return divergence_words(finding.evidence)
    if finding.kind in (FindingKind.HALF_PRECISION_SLOWER, FindingKind.HALF_PRECISION_NO_GAIN):
        return half_precision_words(finding.kind, finding.evidence)
    sentence, advice = _WORDS[finding.kind]
    return sentence, DATA_REMEDIES.get(str(finding.evidence.get("remedy")), advice)


def _formatted(name: str, value: float | int | str) -> str:
    if isinstance(value, str):
        return one_line(value)
    if name in _FORMATS:
        return _FORMATS[name](value)
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"


_FORMATS: Mapping[str, Callable[[float], str]] = {
    "accuracy": percent,
    "chance_accuracy": percent,
    "accuracy_change": signed_points,
    "scaled_accuracy_change": signed_points,
    "accuracy_tolerance": points,
    "sampling_error": points,
    "reach": points,
    "speedup": ratio,
    "worst_speedup": ratio,
    "other_speedup": ratio,
    "contrast": ratio,
    "batch_speedup": ratio,
    "host_fraction": percent,
    **dict.fromkeys(
        (f"{name}_{end}" for name in ("speedup", "other_speedup", "contrast") for end in ("low", "high")), number
    ),
    "window_sd": percent,
    "error_sd": percent,
    "between_sd": percent,
    "compile_seconds": seconds,
    "break_even_epochs": number,
    "foreign_cpus": number,
    "gradient_norm": "{:.3g}".format,
    "final_loss": number,
    "chance_loss": number,
    **DATA_FORMATS,
}

_WORDS: Mapping[FindingKind, tuple[str, str]] = {
    FindingKind.LEARNED_NOTHING: (
        "{trials} learned nothing: accuracy {accuracy} is no better than guessing ({chance_accuracy}), and the loss "
        "{final_loss} no better than ln(classes) = {chance_loss}; the highest lr among them is {lr}.",
        "An lr that is too high and one that is too low both end like this: try others, or train for longer. They are "
        "ranked last.",
    ),
    FindingKind.SEEDS_NOT_COMPLETED: (
        "Not every run of {configurations_counted} completed, such as {unfinished} of {runs} of {configuration}; "
        "the others alone are ranked.",
        "Read why under what was not ranked, before relying on it.",
    ),
    FindingKind.BATCH_SIZE_BLAMED_FOR_LR: (
        "Batch size {after_batch_size} is less accurate than {before_batch_size} at the same lr {lr} "
        "({accuracy_change}). That does not show that the batch size costs accuracy: the lr was not scaled with it.",
        "The fair comparison is batch size {after_batch_size} at lr {scaled_lr}, which was not run; add it to the knob "
        "lr, or use lr_rule: linear.",
    ),
    FindingKind.BATCH_SIZE_CLEARED_BY_LR: (
        "Batch size {after_batch_size} is less accurate than {before_batch_size} at the same lr {lr} "
        "({accuracy_change}), but not at lr {scaled_lr}, which was scaled with it ({scaled_accuracy_change}).",
        "Compare batch sizes at scaled learning rates only.",
    ),
    FindingKind.TOLERANCE_BELOW_SAMPLING_ERROR: (
        "The accuracy tolerance, {accuracy_tolerance}, is below the sampling error of an accuracy, ±{sampling_error} "
        "at {accuracy} over {independent_images} images: which configurations are within it is partly chance.",
        "Validate on more images, or give a larger --accuracy-tolerance.",
    ),
    FindingKind.KNOB_HELPS_ON_ONE_SIDE: (
        "Changing {knob} from {before} to {after} makes training faster only from {other_knob} {threshold} "
        "{direction}: {speedup} [{speedup_low}–{speedup_high}] there, {other_speedup} "
        "[{other_speedup_low}–{other_speedup_high}] elsewhere.",
        "Choose {knob} by the {other_knob} that you will use.",
    ),
    FindingKind.KNOB_DEPENDS_ON_KNOB: (
        "Changing {knob} from {before} to {after} gives {speedup} [{speedup_low}–{speedup_high}] at {other_knob} "
        "{value} and {other_speedup} [{other_speedup_low}–{other_speedup_high}] at {other_knob} {other_value}: "
        "{contrast} as much [{contrast_low}–{contrast_high}].",
        "Choose the two together.",
    ),
    FindingKind.UNSTABLE_TIMING: (
        "The timing of {trials} was unstable: windows scatter by up to {window_sd}, which leaves a median uncertain by "
        "{error_sd}, more than the {between_sd} between processes.",
        "Keep the machine free of other work, or raise --repeats.",
    ),
    FindingKind.TOO_SHORT_TO_MEASURE: (
        "{trials} gave too few timed windows for a narrow interval: as few as {windows}, where {asked_windows} were "
        "asked for.",
        "Train for more epochs, or on more images.",
    ),
    FindingKind.NEIGHBOURS: (
        "{trials} ran beside other trials on the same node, up to {most}; they may have slowed each other.",
        "Where speed decides, measure again with --max-concurrent 1.",
    ),
    FindingKind.SKIPPED_STEPS: (
        "The GradScaler skipped optimizer steps in {trials}, up to {most}.",
        "A few at the start are how it finds its scale; many mean that fp16's range is too small, and bf16's is not.",
    ),
    FindingKind.MEASURED_ON_COPY: (
        "{trials} trained too briefly to be timed while training: the rate is from a copy, after the last evaluation.",
        "",
    ),
    FindingKind.GROWN_VALIDATION_SET: (
        "The {images} validation images of {dataset} were grown from {independent_images} source images, and an "
        "accuracy carries the sampling error of those.",
        "",
    ),
    FindingKind.SINGLE_SEED_ACCURACY: (
        "{count} of {configurations} accuracies differ from the best by no more than chance explains, and each comes "
        "from one seed; one accuracy alone is uncertain by ±{reach}.",
        "Let accuracy decide only with several seeds (--repeats) and enough validation images.",
    ),
    FindingKind.NOTE: ("{trials}: {note}", ""),
    **COMPILE_WORDS,
    **DATA_WORDS,
    **MACHINE_WORDS,
}
