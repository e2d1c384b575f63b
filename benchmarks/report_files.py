"""What every benchmark's report has: the machine it ran on, medians with their spread, Markdown and JSON beside."""

import importlib.metadata
import json
import os
import platform
import statistics
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parent / "results"


def machine() -> dict[str, Any]:
    """Cores, processor, memory, versions, and how busy the machine is before the benchmark starts."""
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30, 1),
        "system": platform.platform(),
        "python": platform.python_version(),
        "versions": {name: importlib.metadata.version(name) for name in ("torch", "ray", "numpy")},
        "load_average_at_start": load_average(),
    }


def machine_lines(facts: dict[str, Any]) -> list[str]:
    versions = ", ".join(f"{name} {version}" for name, version in facts["versions"].items())
    return [
        f"* Machine: {facts['cores']} cores of {facts['processor']}, {facts['memory_gib']} GiB, {facts['system']}",
        f"* Software: Python {facts['python']}, {versions}",
        f"* Date: {facts['date']}; load average at the start {facts['load_average_at_start']}, at the end "
        f"{facts['load_average_at_end']}; a quiet machine has 0 and 1",
    ]


def load_average() -> float:
    """Of the last minute: how many processes wanted a core."""
    return round(os.getloadavg()[0], 2)


def spread(values: Sequence[float]) -> dict[str, float]:
    """Median, 5th and 95th percentile, and how many values."""
    ordered = sorted(values)
    cuts = statistics.quantiles(ordered, n=20, method="inclusive") if len(ordered) > 1 else ordered * 19
    return {"median": statistics.median(ordered), "low": cuts[0], "high": cuts[-1], "count": len(ordered)}


def shown(values: dict[str, float], digits: int = 3) -> str:
    return f"{values['median']:.{digits}f} ({values['low']:.{digits}f} to {values['high']:.{digits}f})"


def write(name: str, lines: Sequence[str], numbers: dict[str, Any], folder: Path = RESULTS) -> Path:
    """`name`.md and `name`.json."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(numbers, indent=1, allow_nan=False) + "\n")
    path = folder / f"{name}.md"
    path.write_text("\n".join(lines) + "\n")
    return path


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")
