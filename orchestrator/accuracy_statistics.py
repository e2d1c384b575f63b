"""How far an accuracy, and a difference of two, moves by chance alone. Accuracies are fractions from 0 to 1."""

import math
import statistics
from collections.abc import Iterable, Sequence

from orchestrator.statistics import INTERVAL_Z, student_t


def sampling_error(accuracy: float, images: int) -> float:
    """Standard error of an accuracy over `images` independent validation images.

    Binomial, of the adjusted estimate (x + 2) / (n + 4), which is not 0 at an accuracy of 1 (Agresti and Coull 1998).
    """
    adjusted = (accuracy * images + 2) / (images + 4)
    return math.sqrt(adjusted * (1 - adjusted) / (images + 4))


def difference_noise(
    before: float, after: float, images: int | None, *, seed_sd: float | None, differences: Sequence[float] = ()
) -> float | None:
    """Half of the 95 % interval of an accuracy difference that chance alone gives; None where nothing tells it.

    The larger of two. The sampling error of two accuracies as though each had validation images of its own: an upper
    bound, since both are evaluated on the same ones, and one that more seeds do not lower. And what seeds do: where
    several were paired, t sd / sqrt(n) of their `differences`; of one pair, sqrt(2) times the deviation from seed to
    seed, `seed_sd` (an upper bound again: a pair shares its seed), where repeats tell it.
    """
    noises = []
    if images:
        noises.append(INTERVAL_Z * math.hypot(sampling_error(before, images), sampling_error(after, images)))
    if len(differences) > 1:
        pairs = len(differences)
        noises.append(student_t(pairs - 1) * statistics.stdev(differences) / math.sqrt(pairs))
    elif seed_sd is not None:
        noises.append(INTERVAL_Z * math.sqrt(2) * seed_sd)
    return max(noises, default=None)


def pooled_seed_sd(accuracies: Iterable[Sequence[float]]) -> float | None:
    """Pooled standard deviation from seed to seed, over the configurations with several; None where there are none."""
    squares, df = 0.0, 0
    for seeds in accuracies:
        if len(seeds) > 1:
            squares += (len(seeds) - 1) * statistics.variance(seeds)
            df += len(seeds) - 1
    return math.sqrt(squares / df) if df else None
