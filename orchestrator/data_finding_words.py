"""The words for what the three rates of a loop show, and what to do next."""

from collections.abc import Callable, Mapping

from orchestrator.data_findings import Remedy
from orchestrator.findings import FindingKind
from orchestrator.wording import percent, rate, ratio, signed_percent

DATA_WORDS: Mapping[FindingKind, tuple[str, str]] = {
    FindingKind.DATA_BOUND: (
        "{trials} waited for data, {data_wait_fraction} of the time at worst: there the loader feeds {loader_rate} "
        "images/s and compute alone could take {compute_rate}, so a faster precision or compile can give at most "
        "{ceiling} with num_workers {num_workers}.",
        "",
    ),
    FindingKind.DATA_BOUND_PAIR: (
        "Both trials of {count} of {pairs} pairs of {before_value} and {after_value} waited for data: that the second "
        "trains {speedup} as fast says little about {knob}. Its compute alone is {compute_speedup} as fast "
        "({compute_low} to {compute_high}).",
        "Feed the training faster, then compare {knob} again.",
    ),
    FindingKind.RATES_DISAGREE: (
        "The three rates of {trials} do not fit: where they differ most, compute alone at {compute_rate} images/s and "
        "the loader alone at {loader_rate} predict {predicted_rate} together, and training ran at {end_to_end_rate} "
        "({disagreement}). What limits them is unclear.",
        "Training is slower than its parts where workers and training share cores or memory bandwidth, and where the "
        "machine was busier during it; keep the machine free of other work, and train for longer.",
    ),
}

DATA_REMEDIES: Mapping[str, str] = {
    Remedy.OTHER_WORKERS: "Use num_workers {best_workers}: its loader feeds {best_loader_rate} images/s in this run.",
    Remedy.MORE_WORKERS: "Raise num_workers first: {spare_cpus} cores of the node have nothing to do.",
    Remedy.MORE_WORKERS_IF_CPUS: "Raise num_workers first, up to the cores that have nothing to do.",
    Remedy.CHEAPER_DATA: "No core of the node is left for more workers: make the transforms cheaper, read images "
    "stored at the size that is trained on, or train on a node with more cores.",
}

DATA_FORMATS: Mapping[str, Callable[[float], str]] = {
    "data_wait_fraction": percent,
    "ceiling": ratio,
    "compute_speedup": ratio,
    "compute_low": ratio,
    "compute_high": ratio,
    "loader_rate": rate,
    "best_loader_rate": rate,
    "compute_rate": rate,
    "predicted_rate": rate,
    "end_to_end_rate": rate,
    "disagreement": signed_percent,
}
