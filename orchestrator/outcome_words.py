"""In words: what was not ranked and why, and what was not run."""

from collections import defaultdict
from dataclasses import dataclass

from orchestrator.answer import RunReport
from orchestrator.wording import one_line, plural, some_of


@dataclass(frozen=True, slots=True, kw_only=True)
class NotRankedGroup:
    """Trials that are not ranked for the same reason."""

    status: str
    reason: str
    labels: tuple[str, ...]

    def trials(self, most: int) -> str:
        """`bf16-b64-eager-lr0.001-w0, … and 4 more`."""
        return some_of(list(self.labels), most)


def not_ranked_groups(report: RunReport) -> list[NotRankedGroup]:
    """Every trial that is not ranked is in exactly one, in the report's order."""
    groups: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    several = len({(result.outcome.spec.model, result.outcome.spec.dataset) for result in report.results}) > 1
    for entry in report.not_ranked:
        spec = entry.result.outcome.spec
        label = f"{spec.label} ({one_line(spec.model, 60)} on {one_line(spec.dataset, 60)})" if several else spec.label
        groups[entry.result.outcome.status.value, one_line(entry.reason)].append(label)
    return [
        NotRankedGroup(status=status, reason=reason, labels=tuple(labels))
        for (status, reason), labels in groups.items()
    ]


def not_run_words(report: RunReport, most: int) -> str | None:
    """The planned trials that were never started, the first `most` of them by name; None where there are none."""
    if not report.not_run:
        return None
    labels = some_of([spec.label for spec in report.not_run], most)
    return f"{plural(len(report.not_run), 'planned trial')} not run: {labels}"


def counts_words(report: RunReport) -> str:
    """`16 trials: 14 completed, 1 diverged, 1 lost; 12 configurations ranked`."""
    counts = ", ".join(f"{count:,} {status.value}" for status, count in report.status_counts.items())
    ranked = sum(len(ranking.standings) for ranking in report.rankings)
    trials = plural(len(report.results), "trial")
    return f"{trials}: {counts or 'none finished'}; {plural(ranked, 'configuration')} ranked"
