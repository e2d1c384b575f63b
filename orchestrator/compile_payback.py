"""After how much training compiling has paid for itself against the twin that was not compiled."""

from dataclasses import dataclass

from orchestrator.comparison import MatchedPair, Verdict
from trainables.specs import CompileMode


@dataclass(frozen=True, slots=True, kw_only=True)
class Payback:
    compile_seconds: float
    images: float
    """Training images until the time saved is that of compiling."""
    epochs: float | None
    """The same in epochs; None where epochs were not what was trained."""


def payback(pair: MatchedPair) -> Payback | None:
    """None where the pair is not one of eager and compiled, or compiling is not clearly faster (it never pays).

    An image takes 1 / rate; what compiling saves of it, over the seconds that it took, gives the images. An epoch is
    counted with all that its training took.
    """
    compiled = pair.after.outcome.compilation
    seconds = compiled.compile_seconds if compiled else None
    rate = pair.before.rate
    faster = pair.verdict in (Verdict.FASTER, Verdict.COSTS_ACCURACY)
    if not is_compile_pair(pair) or not faster or seconds is None or rate is None:
        return None
    saved = 1 - 1 / pair.speedup.value
    eager = pair.before.outcome
    trained = eager.spec.protocol.epochs is not None and eager.epochs_completed and eager.durations.train_seconds > 0
    epoch_seconds = eager.durations.train_seconds / eager.epochs_completed if trained else None
    return Payback(
        compile_seconds=seconds,
        images=seconds * rate.images_per_second / saved,
        epochs=seconds / (epoch_seconds * saved) if epoch_seconds else None,
    )


def is_compile_pair(pair: MatchedPair) -> bool:
    return pair.knob == "compile" and pair.before_value == CompileMode.OFF
