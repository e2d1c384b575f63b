"""The command line `python -m orchestrator.sweep`: a sweep, from its search space to its report."""

import json
import logging
import os
import shlex
import sys
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from orchestrator.answer import build_report
from orchestrator.auto_repeats import AutoRepeats
from orchestrator.conclusion import conclude
from orchestrator.coordinator import Coordinator
from orchestrator.interruption import INTERRUPTED_EXIT_CODE, Interruption, interruptible, run_interruptibly
from orchestrator.ledger import Ledger
from orchestrator.live import view_for
from orchestrator.placement import PlacementPlan, plan_placement
from orchestrator.plan_report import earlier_costs, print_plan
from orchestrator.planning import Plan, make_plan
from orchestrator.result_document import result_document
from orchestrator.rounds import AUTO_REPEATS
from orchestrator.strategy import BudgetedStrategy, IsolatedStrategy, PlannedStrategy, Strategy
from orchestrator.sweep_options import Options, options_of, with_parameters
from orchestrator.terminal_report import render
from trainables.errors import InputError
from trainables.outcomes import TrialOutcome, TrialStatus

if TYPE_CHECKING:
    from orchestrator.cluster import Cluster

WRONG_INPUT_EXIT_CODE = 2

GRACE_SECONDS = 15.0
"""For Ray to end its trials after an interruption: it gives each five seconds to write a checkpoint."""


@click.command(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@with_parameters
def main(**given: Any) -> None:
    """Run a sweep over the search space SPACE (a YAML file, or the name of a ready one) [quick]."""
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s: %(message)s")
    plan_only = given.pop("plan_only")
    try:
        options = options_of(given)
        plan = make_plan(options.request)
        code = _show_plan(plan, options) if plan_only else _sweep(plan, options)
    except InputError as error:
        for message in error.messages:
            click.echo(f"error: {message}", err=True)
        sys.exit(WRONG_INPUT_EXIT_CODE)
    sys.exit(code)


def _show_plan(plan: Plan, options: Options) -> int:
    placement = None
    if options.address is not None:
        from orchestrator.cluster import ray_cluster  # here: a plan without --address must not import Ray

        with ray_cluster(options.address, sweep_name=plan.name) as cluster:
            placement = _placement(plan, options, cluster)
    print_plan(plan, placement, earlier_costs(options.request.storage), Console())
    return 0


def _sweep(plan: Plan, options: Options) -> int:
    from orchestrator.cluster import environment, ray_cluster  # here: Ray is imported only where it runs

    console = Console(quiet=options.quiet)
    ledger = plan.ledger
    ledger.refuse_unwritable()
    with ray_cluster(options.address, sweep_name=plan.name) as cluster, interruptible() as interruption:
        placement = _placement(plan, options, cluster)
        ledger.write_space(plan.space.to_yaml())
        ledger.write_environment(environment(cluster, sys.argv) | {"asked": plan.asked})
        _announce(plan, options, placement, cluster, console)
        coordinator, ended = _coordinate(plan, options, placement, ledger, console, interruption)
        code = _conclude(coordinator, plan, options, interrupted=interruption.requested)
        if not ended:  # Ray is gone or hangs, and waiting for it to shut down could take for ever
            sys.stdout.flush()
            os._exit(code)
    return code


def _conclude(coordinator: Coordinator, plan: Plan, options: Options, *, interrupted: bool) -> int:
    ledger = plan.ledger
    outcomes = ledger.outcomes()
    report = build_report(
        outcomes,
        not_run=coordinator.not_run(),
        rank_by=options.rank_by,
        accuracy_tolerance=options.accuracy_tolerance,
        baseline=plan.baseline.baseline,
        environment=ledger.environment(),
    )
    conclude(report, ledger, keep_checkpoints=options.keep_checkpoints, retries=options.retries)
    run = ledger.storage.location
    render(report, Console(), run=run)
    completed = any(outcome.status is TrialStatus.COMPLETED for outcome in outcomes)
    code = INTERRUPTED_EXIT_CODE if interrupted else 0 if completed else 1
    if interrupted:
        click.echo(f"continue with: python -m orchestrator.sweep --resume {shlex.quote(run)}")
    if options.as_json:
        document = {"run": run, "exit_code": code, **result_document(report)}
        click.echo(json.dumps(document, allow_nan=False))
    return code


def _placement(plan: Plan, options: Options, cluster: "Cluster") -> PlacementPlan:
    if options.require_gpu and not cluster.gpus:
        raise InputError(
            "--require-gpu: the cluster has no GPU "
            f"({'; '.join(f'{node.name}: {node.cpus:g} CPU' for node in cluster.nodes)}); "
            "start Ray on a machine with GPUs and give its --address, or leave --require-gpu out to run on the CPU"
        )
    return plan_placement(
        plan.specs,
        cluster.nodes,
        gpus_per_trial=options.gpus_per_trial,
        most_at_once=options.max_concurrent,
        exclusive=options.exclusive,
    )


def _announce(plan: Plan, options: Options, placement: PlacementPlan, cluster: "Cluster", console: Console) -> None:
    if placement.on_gpu:
        share = "one GPU" if options.gpus_per_trial == 1 else f"{options.gpus_per_trial:g} of a GPU"
        where = f"up to {placement.most_at_once} at once, {share} each ({cluster.gpus:g} in the cluster)"
    else:
        cpus = max((node.cpus for node in cluster.nodes), default=0)
        where = f"no GPU in the cluster, so on the CPU, one trial at a time with all {cpus:g} cores"
    if placement.exclusive_note:
        where += f", {placement.exclusive_note}"
    console.print(f"sweep {plan.name}: {plan.description}, {where}", soft_wrap=True, markup=False, highlight=False)
    console.print(f"run folder {plan.ledger.storage.location}", soft_wrap=True, markup=False, highlight=False)
    if cluster.dashboard:
        console.print(f"Ray dashboard {cluster.dashboard}", soft_wrap=True, markup=False, highlight=False)


def _coordinate(
    plan: Plan,
    options: Options,
    placement: PlacementPlan,
    ledger: Ledger,
    console: Console,
    interruption: Interruption,
) -> tuple[Coordinator, bool]:
    """The bookkeeping after the last trial, and whether Ray ended in order."""
    from orchestrator.ray_runner import run_on_ray

    retries = options.retries
    known = [*plan.known, *_record_unplaceable(plan, placement, ledger)]
    strategy = _strategy(plan, options, placement)
    view = view_for(quiet=options.quiet, console=console)
    coordinator = Coordinator(
        ledger=ledger,
        planned=plan.specs,
        strategy=strategy,
        retries=retries,
        known=known,
        view=view,
        clock=time.monotonic,
    )

    def should_stop() -> bool:
        over = options.time_budget is not None and coordinator.elapsed_seconds >= options.time_budget
        return interruption.requested or over

    def run() -> None:
        run_on_ray(
            coordinator,
            placement,
            ledger,
            sweep_name=plan.name,
            trial_timeout_seconds=options.trial_timeout,
            cold_compile=options.cold_compile,
            should_stop=should_stop,
        )

    try:
        ended = coordinator.is_done() or run_interruptibly(run, interruption, grace_seconds=GRACE_SECONDS)
    finally:
        view.close()
    return coordinator, ended


def _strategy(plan: Plan, options: Options, placement: PlacementPlan) -> Strategy:
    planned = PlannedStrategy.of(placement.in_order(plan.specs), options.retries)
    strategy: Strategy = planned
    if plan.asked["repeats"] == AUTO_REPEATS:
        strategy = AutoRepeats(
            first=planned,
            retries=options.retries,
            rank_by=options.rank_by,
            accuracy_tolerance=options.accuracy_tolerance,
        )
    if options.isolation == "process":
        strategy = IsolatedStrategy(inner=strategy)
    budget = options.max_gpu_hours
    return BudgetedStrategy(inner=strategy, gpu_seconds=budget * 3600 if budget else None)


def _record_unplaceable(plan: Plan, placement: PlacementPlan, ledger: Ledger) -> list[TrialOutcome]:
    """What no node can hold is an outcome before the sweep starts, never a trial that waits for ever."""
    answered = {(outcome.spec.trial_id, outcome.spec.replicate) for outcome in plan.known}
    recorded = []
    for spec in plan.specs:
        reason = placement.unsupported_reason(spec.config)
        if reason is not None and (spec.trial_id, spec.replicate) not in answered:
            outcome = TrialOutcome(
                spec=spec,
                status=TrialStatus.UNSUPPORTED,
                status_reason=reason,
                finished_at=datetime.now(UTC).isoformat(timespec="seconds"),
            )
            ledger.record(outcome)
            recorded.append(outcome)
    return recorded


if __name__ == "__main__":
    main()
