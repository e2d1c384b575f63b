"""Numbers and names as people read them: the only place where %, points, GiB and minutes are made."""

import re
import unicodedata
from typing import Any

from orchestrator.baseline_choice import EAGER_FP32, Baseline
from trainables.specs import MAIN_KNOBS, TrainingConfig, config_to_mapping, further_knobs

_CONTROL = {"Cc", "Cs", "Zl", "Zp"}
# Marks that turn the direction of all text after them, and so can make a line read otherwise than it is.
_DIRECTION = frozenset("\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_ASCII = str.maketrans({"×": "x", "−": "-", "–": "-", "±": "+/-", "…": "...", "·": "-", "≈": "~", "→": "->"})


def rate(images_per_second: float) -> str:
    """`12,345`, `84.2`, `0.53`."""
    if images_per_second >= 100:
        return f"{images_per_second:,.0f}"
    return f"{images_per_second:.1f}" if images_per_second >= 10 else f"{images_per_second:.3g}"


def ratio(value: float) -> str:
    return f"{number(value)}×"


def number(value: float) -> str:
    """Three digits: `2.10`, `0.97`, `13.2`, `141`."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def interval(low: float, high: float) -> str:
    return f"{number(low)}–{number(high)}"


def half_width(value: float, high: float) -> str:
    """The 95 % interval's upper half as a share of the value: `4 %`."""
    share = 100 * (high / value - 1)
    return f"{share:.1f} %" if share < 1 else f"{share:.0f} %"


def percent(fraction: float, digits: int = 1) -> str:
    return f"{100 * fraction:.{digits}f} %"


def signed_percent(fraction: float) -> str:
    """`−23 %`, `+4 %`, `0 %`."""
    rounded = round(100 * fraction)
    sign = "+" if rounded > 0 else "−" if rounded < 0 else ""
    return f"{sign}{abs(rounded)} %"


def points(fraction: float) -> str:
    """A difference of two percentages: `0.5 pt`."""
    return f"{100 * fraction:.1f} pt"


def signed_points(fraction: float) -> str:
    """`−0.1 pt`, `+0.3 pt`, `0.0 pt`."""
    rounded = round(100 * fraction, 1)
    sign = "+" if rounded > 0 else "−" if rounded < 0 else ""
    return f"{sign}{abs(rounded):.1f} pt"


def seconds(duration: float) -> str:
    """`0.35 s`, `12.3 s`, `3 min 20 s`, `2 h 05 min`."""
    if duration < 1:
        return f"{duration:.2f} s"
    if duration < 99.95:
        return f"{duration:.1f} s"
    minutes, rest = divmod(round(duration), 60)
    return f"{minutes} min {rest:02d} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"


def memory(size_bytes: int) -> str:
    """`340 MiB`, `1.25 GiB`."""
    return f"{size_bytes / 2**20:.0f} MiB" if size_bytes < 2**30 else f"{size_bytes / 2**30:.2f} GiB"


def plural(count: int, noun: str) -> str:
    """`1 trial`, `3 trials`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def configuration(config: TrainingConfig) -> str:
    """`bf16, batch 256, compiled, lr 0.001, 2 workers`, and the further knobs that are not at their default."""
    values = config_to_mapping(config)
    shown = {name: values[name] for name in MAIN_KNOBS} | further_knobs(config)
    return ", ".join(knob_words(name, value) for name, value in shown.items())


def knob_words(name: str, value: Any) -> str:
    """One knob as part of a configuration: `bf16`, `batch 256`, `not compiled`, `no workers`, `channels_last True`."""
    match name:
        case "precision":
            return str(value)
        case "batch_size":
            return f"batch {value}"
        case "compile":
            return {"off": "not compiled", "default": "compiled"}.get(value, f"compiled ({value})")
        case "lr":
            return f"lr {value:g}"
        case "num_workers":
            return plural(value, "worker") if value else "no workers"
    return f"{name} {value}"


def baseline_words(baseline: Baseline) -> str:
    """`fp32, not compiled`."""
    return ", ".join(knob_words(name, value) for name, value in baseline.values)


def baseline_name(baseline: Baseline) -> str:
    """`fp32 baseline` for the usual one, else `baseline (bf16, batch 64)`."""
    return "fp32 baseline" if baseline == EAGER_FP32 else f"baseline ({baseline_words(baseline)})"


def some_of(names: list[str], most: int, separator: str = ", ") -> str:
    """`a, b, c and 9 more`."""
    shown = separator.join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most:,} more"


def one_line(text: str, most: int = 300) -> str:
    """Foreign text (a reason, a name) made safe to show: one line, no control characters, not too long."""
    text = re.sub(r"\s+", " ", text).strip()
    text = "".join("?" if unicodedata.category(sign) in _CONTROL or sign in _DIRECTION else sign for sign in text)
    return text if len(text) <= most else f"{text[: most - 1]}…"


def plain_signs(text: str) -> str:
    """Our own signs in ASCII, for files and pipes; foreign letters stay as they are."""
    return text.translate(_ASCII)
