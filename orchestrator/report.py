"""The command line `python -m orchestrator.report`: stored runs ranked and reported again, with no Ray and no torch."""

import json
import logging
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click
from rich.console import Console

from orchestrator import html_report
from orchestrator.answer import RunReport, build_report
from orchestrator.baseline_choice import BaselineChoice, read_baseline, shared_choice
from orchestrator.ledger import Ledger
from orchestrator.planning import Request, make_plan
from orchestrator.ranking import DEFAULT_ACCURACY_TOLERANCE, RankBy
from orchestrator.result_document import result_document
from orchestrator.terminal_report import render
from trainables.errors import InputError
from trainables.outcomes import TrialOutcome, TrialStatus
from trainables.specs import TrialSpec

WRONG_INPUT_EXIT_CODE = 2

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRun:
    """What a run's folder holds."""

    ledger: Ledger
    outcomes: tuple[TrialOutcome, ...]
    not_run: tuple[TrialSpec, ...]


@click.command(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.argument("runs", nargs=-1, required=True, metavar="RUN [RUN ...]")
@click.option("--html", type=click.Path(path_type=Path), metavar="FILE", help="Write the report as one HTML file too.")
@click.option(
    "--rank-by",
    type=click.Choice([rule.value for rule in RankBy]),
    default=RankBy.FASTEST_ACCURATE.value,
    show_default=True,
)
@click.option(
    "--accuracy-tolerance",
    type=click.FloatRange(0, 1),
    default=DEFAULT_ACCURACY_TOLERANCE,
    show_default=True,
    help="As accurate as the best, for the ranking (a fraction).",
)
@click.option(
    "--baseline",
    metavar="CONFIG|auto|none",
    help="Compare with the same configuration in these knobs (precision=fp32,compile=off); auto: fp32 without compile "
    "[what the run asked for].",
)
@click.option("--json", "as_json", is_flag=True, help="The last line of the output is one JSON document.")
def main(
    runs: tuple[str, ...],
    html: Path | None,
    rank_by: str,
    accuracy_tolerance: float,
    baseline: str | None,
    as_json: bool,
) -> None:
    """Rank and report the stored runs in the folders RUN again, together where they are comparable."""
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s: %(message)s")
    try:
        choice = None if baseline is None else read_baseline(baseline)
        stored = _read_all(runs)
        report = build_report(
            [outcome for run in stored for outcome in run.outcomes],
            not_run=_never_run(stored),
            rank_by=RankBy(rank_by),
            accuracy_tolerance=accuracy_tolerance,
            baseline=(choice or _asked_baseline(stored)).baseline,
            environment=_environment(stored),
        )
        if html is not None:
            _write_html(report, html)
    except InputError as error:
        for message in error.messages:
            click.echo(f"error: {message}", err=True)
        sys.exit(WRONG_INPUT_EXIT_CODE)
    render(report, Console(), run=_folder_with_files(stored))
    completed = any(result.outcome.status is TrialStatus.COMPLETED for result in report.results)
    code = 0 if completed else 1
    if as_json:
        document = {"runs": [run.ledger.storage.location for run in stored], "exit_code": code}
        click.echo(json.dumps(document | result_document(report), allow_nan=False))
    sys.exit(code)


def _read_all(locations: Sequence[str]) -> list[StoredRun]:
    """Raises `InputError` with what is wrong with any of them."""
    stored: list[StoredRun] = []
    messages: list[str] = []
    for location in dict.fromkeys(locations):
        try:
            stored.append(_read(location))
        except InputError as error:
            messages += error.messages
    if messages:
        raise InputError(*messages)
    return stored


def _read(location: str) -> StoredRun:
    """A plan that cannot be made again (an entry that is not here, say) hides what was not run, and nothing else."""
    ledger = Ledger.open(location)
    try:
        plan = make_plan(Request(resume=location, accept_changed_code=True))
    except InputError as error:
        logger.warning("%s: what was not run is not known: %s", location, error)
        return StoredRun(ledger=ledger, outcomes=tuple(ledger.outcomes()), not_run=())
    recorded = {(outcome.spec.trial_id, outcome.spec.replicate) for outcome in plan.known}
    not_run = tuple(spec for spec in plan.specs if (spec.trial_id, spec.replicate) not in recorded)
    return StoredRun(ledger=ledger, outcomes=plan.known, not_run=not_run)


def _never_run(stored: Sequence[StoredRun]) -> list[TrialSpec]:
    """What one run left out, another may have run."""
    recorded = {(outcome.spec.trial_id, outcome.spec.replicate) for run in stored for outcome in run.outcomes}
    missing = {(spec.trial_id, spec.replicate): spec for run in stored for spec in run.not_run}
    return [spec for key, spec in missing.items() if key not in recorded]


def _asked_baseline(stored: Sequence[StoredRun]) -> BaselineChoice:
    return shared_choice(run.ledger.environment().get("asked", {}).get("baseline") for run in stored)


def _environment(stored: Sequence[StoredRun]) -> dict[str, object]:
    if len(stored) == 1:
        return stored[0].ledger.environment()
    return {run.ledger.storage.location: run.ledger.environment() for run in stored}


def _folder_with_files(stored: Sequence[StoredRun]) -> str | None:
    """The run's folder, where there is one run and its files are written."""
    only = stored[0].ledger.storage
    return only.location if len(stored) == 1 and only.has("results.parquet") else None


def _write_html(report: RunReport, path: Path) -> None:
    try:
        path.write_text(html_report.render(report), encoding="utf-8")
    except OSError as error:
        raise InputError(
            f"--html {path}: cannot be written ({error.strerror}); give a file in a folder that exists"
        ) from error


if __name__ == "__main__":
    main()
