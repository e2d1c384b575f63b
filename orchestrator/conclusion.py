"""The end of a sweep: its report in every form, in the run's folder, and the checkpoints that are kept."""

from orchestrator import html_report, markdown_report
from orchestrator.answer import RunReport
from orchestrator.ledger import Ledger, checkpoint_folder
from orchestrator.results_table import best_yaml, write_results
from orchestrator.strategy import RetryPolicy


def conclude(report: RunReport, ledger: Ledger, *, keep_checkpoints: str, retries: RetryPolicy) -> None:
    """Writes results, leaderboard, report and the winner; then deletes the checkpoints that nobody asked to keep."""
    write_results(report, ledger.storage)
    ledger.storage.write("leaderboard.md", markdown_report.render(report).encode())
    ledger.storage.write("report.html", html_report.render(report).encode())
    winner = best_yaml(report)
    if winner is not None:
        ledger.storage.write("best.yaml", winner.encode())
    else:
        ledger.storage.delete("best.yaml")  # of an earlier conclusion of this run
    if keep_checkpoints != "all":
        _delete_checkpoints(report, ledger, keep_winner=keep_checkpoints == "winner", retries=retries)


def _delete_checkpoints(report: RunReport, ledger: Ledger, *, keep_winner: bool, retries: RetryPolicy) -> None:
    """Those of unfinished trials, and of trials that will be tried again, always stay: they are where to continue."""
    kept = set()
    if keep_winner and report.winner is not None:
        kept = {checkpoint_folder(result.outcome.spec) for result in report.winner.results}
    for result in report.results:
        folder = checkpoint_folder(result.outcome.spec)
        if folder not in kept and not retries.has_tries_left(result.outcome):
            ledger.storage.delete_folder(folder)
