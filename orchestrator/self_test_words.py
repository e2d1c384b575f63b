"""The self-test as a table: each injected delay, with the columns it must show in below it."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from orchestrator.self_test_checks import Check
from orchestrator.wording import one_line, plural

HEADING = ("injected delay, and its columns", "as asked", "true", "measured", "error", "careless", "")
_FIRST_WIDTH = 30
_WIDTH = 11


def table_lines(checks: Iterable[Check]) -> Iterator[str]:
    """A line as soon as its check is known."""
    yield _line(HEADING)
    injected = None
    for check in checks:
        if check.injected != injected:
            injected = check.injected
            yield injected
        yield _line(_cells(check))
        if check.fault:
            yield f"    {one_line(check.fault)}"


def summary_lines(checks: Sequence[Check], *, load: float, cpus: int) -> Iterator[str]:
    """`load`: how many processes wanted a core of the machine, a mean over the last minute."""
    skipped = sum(check.skipped for check in checks)
    failed = sum(not check.passed and not check.skipped for check in checks)
    yield (
        f"self-test: {len(checks) - skipped - failed} passed, {failed} failed"
        + (f", {skipped} could not be tested here" if skipped else "")
        + ". True: by arithmetic from what was really slept. Careless: what an account without this care would say."
    )
    for check in checks:
        if check.column == "images_per_second" and check.careless and isinstance(check.measured, float):
            times = f"{check.careless / check.measured:.3g}"
            yield f"  {check.injected}: without that care the rate would be {times} times as high."
    if failed:
        yield (
            f"{plural(failed, 'check')} failed. On a busy machine steps really take longer than they slept: "
            f"{load:.1f} processes wanted its {plural(cpus, 'core')} in the last minute. Repeat the test on a machine "
            "at rest; what fails there is measured wrong."
        )


def check_mapping(check: Check) -> dict[str, Any]:
    """Plain values for JSON."""
    return {
        "injected": check.injected,
        "column": check.column,
        "nominal": check.nominal,
        "expected": check.expected,
        "measured": check.measured,
        "error": check.error,
        "careless": check.careless,
        "largest_error": check.largest_error,
        "passed": None if check.skipped else check.passed,
        "fault": check.fault,
    }


def _cells(check: Check) -> tuple[str, ...]:
    error = "" if check.error is None else f"{100 * check.error:+.1f} %".replace("-", "−")
    result = "not tested" if check.skipped else "passed" if check.passed else "FAILED"
    values = (check.nominal, check.expected, check.measured)
    return (f"  {check.column}", *map(_value, values), error, _value(check.careless), result)


def _value(value: float | str | None) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    if value >= 100_000:
        return f"{value:,.0f}"
    return f"{value:.0f}" if value == int(value) and value >= 10 else f"{value:.4g}"


def _line(cells: Sequence[str]) -> str:
    first, *middle, last = cells
    return f"{first:<{_FIRST_WIDTH}} " + "".join(f"{cell:>{_WIDTH}}" for cell in middle) + f"  {last}".rstrip()
