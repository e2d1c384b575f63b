"""Findings about trials that became non-finite: one for each cause that their replays showed."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from orchestrator.findings import Finding, FindingKind, finding
from orchestrator.results import Result
from trainables.divergence_words import broken_place
from trainables.measurements import DivergenceCause, DivergenceDiagnosis


def divergence_findings(results: Sequence[Result]) -> Iterator[Finding]:
    """The trial that broke first is the one that the evidence is of."""
    groups: defaultdict[DivergenceCause, dict[Result, DivergenceDiagnosis]] = defaultdict(dict)
    for result in results:
        if (diagnosis := result.outcome.divergence) is not None:
            groups[diagnosis.cause][result] = diagnosis
    for cause in DivergenceCause:
        if known := groups.get(cause):
            first = min(known, key=lambda result: known[result].first_nonfinite_step or 0)
            configs = [result.outcome.spec.config for result in known]
            yield finding(
                FindingKind.DIVERGED,
                list(known),
                count=len(known),
                cause=cause.value,
                precisions=", ".join(sorted({config.precision.value for config in configs})),
                configuration=first.outcome.spec.label,
                lr=max(config.lr for config in configs),
                **_evidence(known[first]),
            )


def _evidence(found: DivergenceDiagnosis) -> dict[str, float | int | str]:
    """What is not known is left out."""
    evidence: dict[str, float | int | str | None] = {
        "replayed_from_step": found.replayed_from_step,
        "step": found.first_nonfinite_step,
        "module": found.first_nonfinite_module,
        "place": broken_place(found) if found.nonfinite_in else None,
        "gradient_norm": found.gradient_norm_before,
    }
    return {name: value for name, value in evidence.items() if value is not None}
