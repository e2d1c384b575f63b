"""The options of a sweep: read, checked against each other, and kept as one value."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from orchestrator.planning import Request
from orchestrator.ranking import RankBy
from orchestrator.rounds import AUTO_REPEATS, Repeats
from orchestrator.strategy import RetryPolicy
from trainables.errors import InputError

Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to run, judge and show, as the command line gave it."""

    request: Request
    max_gpu_hours: float | None
    time_budget: float | None
    address: str | None
    gpus_per_trial: float
    require_gpu: bool
    exclusive: bool
    isolation: str
    max_concurrent: int | None
    cold_compile: bool
    trial_timeout: float | None
    max_retries: int
    keep_checkpoints: str
    rank_by: RankBy
    accuracy_tolerance: float
    quiet: bool
    as_json: bool

    @property
    def retries(self) -> RetryPolicy:
        return RetryPolicy(lost_retries=self.max_retries)


def options_of(given: dict[str, Any]) -> Options:
    """From the parameters of the command, by name. Raises `InputError` where options contradict each other."""
    asked = {name: given.pop(name) for name in Request.__dataclass_fields__}
    share = given["gpus_per_trial"]
    wrong = [
        f"--{name.replace('_', '-')} {value}: give a finite number"
        for name, value in given.items()
        if isinstance(value, float) and not math.isfinite(value)
    ]
    if not 0 < share <= 1:
        wrong.append(
            f"--gpus-per-trial {share:g}: a trial uses one device; give 1, or a fraction above 0 to share a card"
        )
    if given["exclusive"] and 0 < share < 1:
        wrong.append(
            f"--exclusive: a trial that is alone on its node shares no card; leave --gpus-per-trial {share:g} out"
        )
    if asked["resume"] is None and (asked["extend"] or asked["accept_changed_code"]):
        wrong.append("--extend and --accept-changed-code continue a run; name it with --resume RUN")
    if asked["resume"] is not None and asked["name"] is not None:
        wrong.append("--name: a continued run keeps its name; leave --name or --resume out")
    if wrong:
        raise InputError(*wrong)
    given["rank_by"] = RankBy(given["rank_by"])
    return Options(request=Request(**asked), **given)


def _repeats(_context: click.Context, _parameter: click.Parameter, given: str | None) -> Repeats | None:
    if given is None or given == "auto":
        return AUTO_REPEATS if given else None
    if not given.isdecimal() or int(given) < 1:
        raise click.BadParameter(f"{given!r}: give the runs of each configuration, a whole number from 1, or auto")
    return int(given)


PARAMETERS = (
    click.argument("space", required=False),
    click.option(
        "--set",
        "overrides",
        multiple=True,
        metavar="KEY=VALUE",
        help="Replace a value of the space; repeatable (knobs.lr=[0.001,0.003]).",
    ),
    click.option("--seed", type=click.IntRange(min=0), help="Seed of the sweep [the space's]."),
    click.option(
        "--repeats",
        callback=_repeats,
        metavar="N|auto",
        help="Runs of each configuration; run r uses seed + r and a fresh process; auto: one, and more where the first "
        "place is undecided [1].",
    ),
    click.option(
        "--baseline",
        metavar="CONFIG|auto|none",
        help="Compare with the same configuration in these knobs (precision=fp32,compile=off), and add the trials that "
        "this needs; auto: fp32 without compile [auto where precision or compile is a list].",
    ),
    click.option(
        "--search", type=click.Choice(["grid", "random"]), help="[grid; random when a knob is a distribution]"
    ),
    click.option("--num-samples", type=click.IntRange(min=1), help="Configurations that a random search draws [16]."),
    click.option(
        "--max-gpu-hours", type=click.FloatRange(min=0, min_open=True), help="Start no trial after this many GPU hours."
    ),
    click.option(
        "--time-budget",
        type=click.FloatRange(min=0, min_open=True),
        metavar="SECONDS",
        help="End the sweep after this time.",
    ),
    click.option("--address", help="Join this Ray (host:port, or auto) [a fresh local Ray]."),
    click.option("--storage", default="runs", show_default=True, metavar="PATH_OR_URI", help="Where run folders are."),
    click.option("--name", help="Name of the run's folder [space and time]."),
    click.option(
        "--gpus-per-trial", type=float, default=1.0, show_default=True, help="A fraction shares a card, and is marked."
    ),
    click.option("--require-gpu", is_flag=True, help="Refuse to run on CPUs."),
    click.option(
        "--exclusive", is_flag=True, help="Give each trial its node alone, so that neighbours cannot slow it."
    ),
    click.option(
        "--isolation",
        type=click.Choice(["reuse", "process"]),
        default="reuse",
        show_default=True,
        help="process: each trial in a fresh process. Repeats and new tries always get one.",
    ),
    click.option("--max-concurrent", type=click.IntRange(min=1), help="Most trials at once [what the cluster holds]."),
    click.option(
        "--cold-compile", is_flag=True, help="Compile every trial into an empty cache: its cost is the first time's."
    ),
    click.option(
        "--trial-timeout",
        type=click.FloatRange(min=0, min_open=True),
        metavar="SECONDS",
        help="End a trial after this time [none].",
    ),
    click.option(
        "--max-retries",
        type=click.IntRange(min=0),
        default=2,
        show_default=True,
        help="New tries of a trial whose worker died.",
    ),
    click.option("--resume", metavar="RUN", help="Continue the run in this folder."),
    click.option("--extend", is_flag=True, help="With --resume: the space may have changed; only what is new runs."),
    click.option(
        "--accept-changed-code", is_flag=True, help="With --resume: earlier answers of changed code stay answers."
    ),
    click.option(
        "--keep-checkpoints", type=click.Choice(["winner", "all", "none"]), default="winner", show_default=True
    ),
    click.option(
        "--rank-by",
        type=click.Choice([rule.value for rule in RankBy]),
        default=RankBy.FASTEST_ACCURATE.value,
        show_default=True,
    ),
    click.option(
        "--accuracy-tolerance",
        type=click.FloatRange(0, 1),
        default=0.005,
        show_default=True,
        help="As accurate as the best, for the ranking (a fraction).",
    ),
    click.option("--plan", "plan_only", is_flag=True, help="Show every trial and what it asks for; start nothing."),
    click.option("--quiet", is_flag=True, help="No progress."),
    click.option("--json", "as_json", is_flag=True, help="The last line of the output is one JSON document."),
)


def with_parameters(command: Command) -> Command:
    """In the order of `--help`: what, how, where, robust, judge, show."""
    for parameter in reversed(PARAMETERS):
        command = parameter(command)
    return command
