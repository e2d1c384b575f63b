"""A ranking as columns of text, which the terminal, Markdown and HTML lay out each in their way."""

import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from orchestrator.baseline import NoBaseline
from orchestrator.baseline_choice import EAGER_FP32, Baseline
from orchestrator.bottleneck import runs_rates
from orchestrator.ranking import Ranking, Standing
from orchestrator.wording import baseline_words, half_width, memory, rate, ratio, seconds, signed_points
from trainables.specs import MAIN_KNOBS, config_to_mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One heading over one cell for each row. The short form says the same in less room."""

    name: str
    short_name: str
    cells: tuple[str, ...]
    short_cells: tuple[str, ...]
    numeric: bool = True
    drop_order: int | None = None
    """Where room is short, the smallest is left out first; None: never."""
    is_knob: bool = False

    @property
    def only_cell(self) -> str | None:
        """The cell that all rows share; None where they differ, or for one row alone."""
        return self.cells[0] if len(self.cells) > 1 and len(set(self.cells)) == 1 else None


def leaderboard(ranking: Ranking, most: int | None = None) -> list[Column]:
    """Of the first `most` rows. What nobody measured has no column."""
    standings = ranking.standings[:most]
    columns = [
        _column("rank", "#", standings, lambda entry: str(entry.rank)),
        *_knob_columns(standings),
        _column("images/s", "images/s", standings, _rate),
        _column("95 % interval", "±", standings, _interval, short=_half_width, drop_order=5),
        _column(*_speedup_names(ranking.baseline), standings, _speedup, short=_short_speedup, drop_order=6),
        _column("bottleneck", "limit", standings, _bottleneck, drop_order=1, numeric=False),
        _column("accuracy", "accuracy", standings, _accuracy, short=_short_accuracy),
        _column("change", "change", standings, _accuracy_change, drop_order=4),
        _column("compile time", "compiling", standings, _compile_seconds, drop_order=3),
        _column("peak memory", "memory", standings, _memory, drop_order=2),
        _column("runs", "runs", standings, _runs, drop_order=1),
        _column("trial time", "time", standings, _trial_seconds, drop_order=0),
    ]
    return [column for column in columns if column.is_knob or any(column.cells)]


def _column(
    name: str,
    short_name: str,
    standings: Iterable[Standing],
    cell: Callable[[Standing], str],
    *,
    short: Callable[[Standing], str] | None = None,
    drop_order: int | None = None,
    numeric: bool = True,
) -> Column:
    cells = tuple(cell(entry) for entry in standings)
    short_cells = cells if short is None else tuple(short(entry) for entry in standings)
    return Column(
        name=name,
        short_name=short_name,
        cells=cells,
        short_cells=short_cells,
        numeric=numeric,
        drop_order=drop_order,
    )


_SHORT_NAMES = {"batch_size": "batch", "num_workers": "workers"}
_SHORT_VALUES = {"reduce-overhead": "reduce", "max-autotune": "max"}


def _knob_columns(standings: tuple[Standing, ...]) -> Iterable[Column]:
    """The five main knobs, and each further one in which the configurations differ."""
    configs = [config_to_mapping(entry.config) for entry in standings]
    for name in configs[0]:
        values = [config[name] for config in configs]
        if name in MAIN_KNOBS or len(set(values)) > 1:
            cells = tuple(_knob_value(value) for value in values)
            yield Column(
                name=name,
                short_name=_SHORT_NAMES.get(name, name),
                cells=cells,
                short_cells=tuple(_SHORT_VALUES.get(cell, cell) for cell in cells),
                numeric=all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values),
                is_knob=True,
            )


def _knob_value(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if value is None:
        return "none"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _rate(entry: Standing) -> str:
    return rate(entry.rate.images_per_second) if entry.rate else ""


def _interval(entry: Standing) -> str:
    return f"{rate(entry.rate.low)}–{rate(entry.rate.high)}" if entry.rate else ""


def _half_width(entry: Standing) -> str:
    return half_width(entry.rate.images_per_second, entry.rate.high) if entry.rate else ""


def _speedup_names(baseline: Baseline | None) -> tuple[str, str]:
    """What the speed-up is over: `speed-up over bf16, batch 64` and, short, `×bf16/64`; `fp32` for the usual one."""
    if baseline is None:
        return "speed-up", "×"
    if baseline == EAGER_FP32:
        return "speed-up over fp32", "×fp32"
    return f"speed-up over {baseline_words(baseline)}", f"×{'/'.join(str(value) for _, value in baseline.values)}"


def _speedup(entry: Standing) -> str:
    """Against its own baseline; `~` where that is no clear difference."""
    if entry.baseline.missing is NoBaseline.IS_BASELINE:
        return "baseline"
    speedup = entry.baseline.speedup
    if speedup is None:
        return ""
    return f"~{ratio(speedup.value)}" if speedup.is_tie else ratio(speedup.value)


def _short_speedup(entry: Standing) -> str:
    return "base" if entry.baseline.missing is NoBaseline.IS_BASELINE else _speedup(entry)


def _bottleneck(entry: Standing) -> str:
    """What limits the rate: `data`, `compute` or `unclear`."""
    verdict = runs_rates([result.loop for result in entry.results]).bottleneck
    return verdict.value if verdict else ""


def _accuracy(entry: Standing) -> str:
    """With its sampling error, a standard error, beside it."""
    if entry.accuracy is None:
        return ""
    error = "" if entry.sampling_error is None else f" ± {100 * entry.sampling_error:.1f}"
    return f"{100 * entry.accuracy:.1f}{error} %"


def _short_accuracy(entry: Standing) -> str:
    return _accuracy(entry).replace(" ", "")


def _accuracy_change(entry: Standing) -> str:
    change = entry.baseline.accuracy_change
    return "" if change is None else signed_points(change)


def _compile_seconds(entry: Standing) -> str:
    measured = [result.outcome.compilation for result in entry.results]
    known = [one.compile_seconds for one in measured if one and one.compile_seconds is not None]
    return seconds(max(known)) if known else ""


def _memory(entry: Standing) -> str:
    known = [peak for result in entry.results if (peak := result.outcome.peak_memory_bytes) is not None]
    return memory(max(known)) if known else ""


def _runs(entry: Standing) -> str:
    """Blank for one run of one; `2 of 3` where a seed did not complete."""
    ranked, planned = len(entry.results), len(entry.results) + len(entry.unfinished)
    return "" if planned == 1 else str(ranked) if ranked == planned else f"{ranked} of {planned}"


def _trial_seconds(entry: Standing) -> str:
    return seconds(statistics.fmean(result.outcome.durations.trial_seconds for result in entry.results))
