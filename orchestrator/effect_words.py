"""What each knob does, in words: a line for each change of a value, and how its numbers came about."""

from collections.abc import Sequence

from orchestrator.knob_effects import KnobEffect
from orchestrator.pair_columns import knob_text
from orchestrator.wording import interval, plural, points, ratio, signed_points

EFFECT_METHOD = (
    "Each is the geometric mean over matched pairs, which differ in this knob alone. Its 95 % interval is for the mean "
    "over configurations like these (random effects; of one pair, that pair's own); beside it are the lowest and the "
    "highest pair."
)
ACCURACY_METHOD = (
    "Accuracy is compared within pairs of one seed; ± is half of the 95 % interval that chance gives such a change: "
    "the sampling of the validation images, and what seeds do where several were run. Batch sizes are compared in "
    "accuracy only where the lr was scaled along."
)
COMPILED_NOISE = (
    "Compiled code draws other random numbers than eager code from the same seed (another dropout mask), so what "
    "compile changes within this noise is another seed's luck, and no effect of compiling."
)


def effect_line(effect: KnobEffect) -> str:
    """`compile off → default: 0.62× [0.43–0.89] over 2 pairs, slower; accuracy −0.3 pt, within the ±2.5 pt of …`."""
    words = f"{effect.knob} {change_words(effect)}: {ratio(effect.speedup.value)} "
    words += f"[{interval(effect.speedup.low, effect.speedup.high)}] over {plural(len(effect.pairs), 'pair')}"
    words += f", {verdict_words(effect)}"
    if effect.accuracy_change is None:
        return words
    scaled = " with the lr scaled along" if effect.knob == "batch_size" else ""
    return f"{words}; accuracy{scaled} {_accuracy(effect)}"


def change_words(effect: KnobEffect) -> str:
    return f"{knob_text(effect.before_value) or 'none'} → {knob_text(effect.after_value) or 'none'}"


def verdict_words(effect: KnobEffect) -> str:
    """`faster`, or `faster, 3 pairs data-bound`."""
    words = effect.verdict.value.replace("_", " ")
    return f"{words}, {plural(effect.data_bound, 'pair')} data-bound" if effect.data_bound else words


def change_with_noise(change: float | None, noise: float | None) -> str:
    """`−0.3 ± 2.5 pt`, or `−0.3 pt` where the noise is not known, or nothing."""
    if change is None:
        return ""
    if noise is None:
        return signed_points(change)
    return f"{signed_points(change).removesuffix(' pt')} ± {points(noise)}"


def effect_notes(effects: Sequence[KnobEffect]) -> tuple[str, ...]:
    notes = [EFFECT_METHOD]
    if any(effect.accuracy_change is not None for effect in effects):
        notes.append(ACCURACY_METHOD)
    if any(_is_noise(effect) for effect in effects if effect.knob == "compile"):
        notes.append(COMPILED_NOISE)
    return tuple(notes)


def _accuracy(effect: KnobEffect) -> str:
    change, noise = effect.accuracy_change or 0.0, effect.accuracy_noise
    if noise is None:
        return signed_points(change)
    relation = "within" if abs(change) <= noise else "more than"
    return f"{signed_points(change)}, {relation} the ±{points(noise)} of chance"


def _is_noise(effect: KnobEffect) -> bool:
    change, noise = effect.accuracy_change, effect.accuracy_noise
    return change is not None and noise is not None and 0 < abs(change) <= noise
