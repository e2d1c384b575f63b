"""The words for what `torch.compile` did and was worth, and what to do next."""

from collections.abc import Mapping

from orchestrator.findings import FindingKind

COMPILE_WORDS: Mapping[FindingKind, tuple[str, str]] = {
    FindingKind.COMPILE_FELL_BACK: (
        "Under the compile label {trials} ran a part of the model eagerly: {functions} of its functions at most, for "
        "instance {function}. In {gave_up} of them the compiler gave up on a function that it had compiled too often.",
        "Their speed is not that of compiled code; TORCH_LOGS=recompiles,graph_breaks shows each cause.",
    ),
    FindingKind.COMPILE_SLOWER: (
        "Compiling made training slower in {count} of {pairs} matched pairs: {speedup} the speed, "
        "{worst_speedup} at worst.",
        "Leave compile off for these configurations.",
    ),
    FindingKind.COMPILE_NOT_PAID_BACK: (
        "Compiling did not pay for itself in {count} of {pairs} matched pairs: it took {compile_seconds} and trains "
        "{speedup} as fast, which earns that back after {break_even_epochs} epochs ({break_even_images} images); "
        "{epochs} were trained.",
        "Leave compile off for a training as short as this one.",
    ),
    FindingKind.RECOMPILATIONS: (
        "{trials} compiled again after the first time, up to {most} times.",
        "Keep the shapes and types that the model sees fixed; TORCH_LOGS=recompiles shows each cause.",
    ),
    FindingKind.GRAPH_BREAKS: (
        "{trials} had graph breaks, up to {most}, where compiled code falls back to Python; for instance: {reason}.",
        "Change that line of the model; TORCH_LOGS=graph_breaks shows each.",
    ),
}
