"""What a sweep would do, in words: every trial, what it asks for, and its cost where an earlier run can tell it."""

from collections.abc import Iterable, Mapping

from rich.console import Console
from rich.text import Text

from orchestrator.ledger import SPACE, Ledger
from orchestrator.live import duration_text
from orchestrator.placement import PlacementPlan
from orchestrator.planning import Plan
from orchestrator.wording import plural
from trainables.outcomes import TrialStatus
from trainables.specs import TrialSpec
from trainables.storage import Storage


def earlier_costs(location: str) -> dict[str, float]:
    """Seconds of each trial that completed in an earlier run of this storage, by trial id.

    Raises `InputError` where there can be no storage at `location`.
    """
    storage = Storage.open(location)
    costs = {}
    for name in storage.folders():
        if storage.has(f"{name}/{SPACE}"):
            for outcome in Ledger(storage.folder(name)).outcomes():
                if outcome.status is TrialStatus.COMPLETED:
                    costs[outcome.spec.trial_id] = outcome.durations.trial_seconds
    return costs


def print_plan(plan: Plan, placement: PlacementPlan | None, costs: Mapping[str, float], console: Console) -> None:
    """`placement` is None where no cluster was asked."""
    answered = {(outcome.spec.trial_id, outcome.spec.replicate) for outcome in plan.known}
    rows = [("trial", "configuration", "seconds", "asks for")]
    refused: dict[str, int] = {}
    for spec in plan.specs:
        cost = costs.get(spec.trial_id)
        reason = placement.unsupported_reason(spec.config) if placement else None
        if reason:
            refused[reason] = refused.get(reason, 0) + 1
        asks = "done" if (spec.trial_id, spec.replicate) in answered else _asks(spec, placement)
        label = f"{spec.label} (added)" if spec.trial_id in plan.added else spec.label
        rows.append((spec.trial_id, label, "–" if cost is None else f"{cost:.1f}", asks))
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    lines = [f"{one:<{widths[0]}}  {two:<{widths[1]}}  {three:>{widths[2]}}  {four}" for one, two, three, four in rows]
    lines += [f"{plural(count, 'trial')} unsupported: {reason}" for reason, count in refused.items()]
    for line in lines:
        console.print(Text(line), soft_wrap=True)
    trials = plural(len(plan.specs), "trial")
    console.print(f"{plan.description}, {trials}; {total_cost(plan.specs, costs)}", soft_wrap=True)


def total_cost(specs: Iterable[TrialSpec], costs: Mapping[str, float]) -> str:
    trials = list(specs)
    known = [costs[spec.trial_id] for spec in trials if spec.trial_id in costs]
    if not known:
        return "no earlier run in the storage tells their cost"
    if len(known) < len(trials):
        return f"earlier runs tell the cost of {len(known)} of them: {duration_text(sum(known))}"
    return f"{duration_text(sum(known))} of trials, by earlier runs in the storage"


def _asks(spec: TrialSpec, placement: PlacementPlan | None) -> str:
    if placement is None:
        workers = spec.config.num_workers
        return f"1 GPU and {1 + workers} CPU on one node; with no GPU all its CPUs"
    if placement.unsupported_reason(spec.config):
        return "unsupported"
    return str(placement.request(spec.config))
