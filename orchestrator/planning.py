"""From what was typed to the trials that are wanted: a new run, or an earlier one continued."""

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from orchestrator.auto_repeats import ExtraBudget
from orchestrator.baseline_choice import AUTO, BaselineChoice, read_baseline
from orchestrator.ledger import SPACE, Ledger
from orchestrator.rounds import AUTO_REPEATS, Repeats, rounds
from orchestrator.search_space import SearchSpace, load_space, parse_space
from orchestrator.space_files import DEFAULT_SPACE
from orchestrator.twin_plan import AddedTrials, added_trials
from orchestrator.wording import plural
from trainables.entries import code_fingerprint, data_fingerprint, refuse_missing
from trainables.errors import InputError
from trainables.lr_rule import LrRule
from trainables.outcomes import TrialOutcome
from trainables.specs import TrainingConfig, TrialSpec

DEFAULT_NUM_SAMPLES = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What the command line asked for; None where it said nothing."""

    space: str | None = None
    overrides: Sequence[str] = ()
    seed: int | None = None
    search: str | None = None
    num_samples: int | None = None
    repeats: Repeats | None = None
    baseline: str | None = None
    storage: str = "runs"
    name: str | None = None
    resume: str | None = None
    extend: bool = False
    accept_changed_code: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The trials of a run, in order, and what is known of them already."""

    name: str
    space: SearchSpace
    specs: tuple[TrialSpec, ...]
    description: str
    """How many configurations and trials, merged duplicates and exclusions, in words."""
    asked: dict[str, Any]
    """What a resumption needs to plan the same again, as plain values."""
    baseline: BaselineChoice
    added: frozenset[str] = frozenset()
    """Ids of the trials that nobody asked for and a comparison needs."""
    ledger: Ledger
    """Of the run, which is there already where it is continued."""
    known: tuple[TrialOutcome, ...] = ()


def make_plan(request: Request) -> Plan:
    """Raises `InputError` for a space that cannot be read, or one that a resumption may not change."""
    if request.resume is not None:
        return _continued(request, request.resume)
    space = load_space(request.space, overrides=request.overrides, seed=request.seed)
    source = (request.space or DEFAULT_SPACE).rsplit("/", 1)[-1].removesuffix(".yaml").removesuffix(".yml")
    name = request.name or f"{source}-{datetime.now():%Y%m%d-%H%M%S}"
    asked = _asked(request, {}, space) | _fingerprints(space)
    return _planned(space, asked, name=name, ledger=Ledger.create(request.storage, name))


def _continued(request: Request, resume: str) -> Plan:
    ledger = Ledger.open(resume)
    before = ledger.environment().get("asked", {})
    stored = parse_space(ledger.space_yaml(), name=f"{ledger.storage.location}/{SPACE}")
    if request.space is not None:
        space = load_space(request.space, overrides=request.overrides, seed=request.seed)
    else:
        space = parse_space(
            ledger.space_yaml(),
            name=f"{ledger.storage.location}/{SPACE}",
            overrides=request.overrides,
            seed=request.seed,
        )
    asked = _asked(request, before, space) | _fingerprints(space)
    _refuse_changed_space(request, resume, stored, space, before, asked)
    asked |= _accepted_fingerprints(request, resume, stored, space, before, asked)
    name = ledger.storage.location.rstrip("/").rsplit("/", 1)[-1]
    return _planned(space, asked, name=name, ledger=ledger)


def _asked(request: Request, before: dict[str, Any], space: SearchSpace) -> dict[str, Any]:
    search = request.search or before.get("search") or ("random" if space.is_random else "grid")
    if search == "grid" and space.is_random:
        raise InputError(
            "--search grid: a knob of the space is a distribution, which has no grid; "
            "give --search random, or list the knob's values"
        )
    samples = request.num_samples or before.get("num_samples") or DEFAULT_NUM_SAMPLES
    return {
        "search": search,
        "num_samples": samples if search == "random" else None,
        "repeats": request.repeats or before.get("repeats") or 1,
        "baseline": _baseline_asked(request, before, space, search),
    }


def _baseline_asked(request: Request, before: dict[str, Any], space: SearchSpace, search: str) -> str | None:
    """Where nothing was said: `auto` for a grid over what `auto` replaces, since it asks what these are worth."""
    if request.baseline is not None:
        return read_baseline(request.baseline).text
    if before:
        asked: str | None = before.get("baseline")
        return asked
    is_grid = search == "grid" and not space.configs
    return AUTO if is_grid and {"precision", "compile"} & set(space.varies) else None


def _fingerprints(space: SearchSpace) -> dict[str, Any]:
    refuse_missing([space.model, space.dataset])
    return {
        "code_fingerprint": code_fingerprint([space.model, space.dataset]),
        "data_fingerprint": data_fingerprint(space.dataset, space.dataset_args),
    }


def _refuse_changed_space(
    request: Request,
    resume: str,
    stored: SearchSpace,
    space: SearchSpace,
    before: dict[str, Any],
    asked: dict[str, Any],
) -> None:
    if request.extend:
        return
    changes = [
        line.rstrip("\n")
        for line in difflib.unified_diff(
            stored.to_yaml().splitlines(), space.to_yaml().splitlines(), "the run's space", "now", lineterm="", n=1
        )
    ]
    changes += [
        f"--{key.replace('_', '-')} was {before[key] or 'not given'}, now {asked[key] or 'not given'}"
        for key in ("search", "num_samples", "repeats", "baseline")
        if key in before and before[key] != asked[key]
    ]
    if changes:
        raise InputError(
            f"--resume {resume}: the space is not the one that this run began with; add --extend to run what is new "
            "beside what is there, or leave the change out:\n  " + "\n  ".join(changes)
        )


def _accepted_fingerprints(
    request: Request,
    resume: str,
    stored: SearchSpace,
    space: SearchSpace,
    before: dict[str, Any],
    asked: dict[str, Any],
) -> dict[str, Any]:
    """The earlier fingerprints, where a change was accepted: earlier answers then stay answers."""
    same_entries = (stored.model, stored.dataset, stored.dataset_args) == (
        space.model,
        space.dataset,
        space.dataset_args,
    )
    if not same_entries or not before.keys() >= {"code_fingerprint", "data_fingerprint"}:
        return {}
    keys = ("code_fingerprint", "data_fingerprint")
    changed = [key.split("_")[0] for key in keys if before[key] != asked[key]]
    if changed and not request.accept_changed_code:
        raise InputError(
            f"--resume {resume}: the {' and '.join(changed)} of {space.model} and {space.dataset} changed since this "
            "run began, so old and new answers would not compare; add --accept-changed-code to keep the old answers, "
            "or start a new run"
        )
    return {key: before[key] for key in keys}


def _planned(space: SearchSpace, asked: dict[str, Any], *, name: str, ledger: Ledger) -> Plan:
    notes: list[str] = []
    if asked["search"] == "random":
        drawn = [space.sample(index) for index in range(asked["num_samples"])]
        configs = tuple(dict.fromkeys(drawn))
        merged, excluded = len(drawn) - len(configs), 0
    else:
        grid = space.grid()
        configs, merged, excluded = grid.configs, grid.merged_duplicates, grid.excluded_by_constraints
    if merged:
        notes.append(f"{plural(merged, 'duplicate')} merged")
    if excluded:
        notes.append(f"{excluded} excluded by constraints")
    choice = read_baseline(asked["baseline"])
    added = _added(space, configs, choice)
    if added.excluded_baselines:
        notes.append(f"{plural(added.excluded_baselines, 'missing baseline')} excluded by constraints")
    unasked = set(added.configs)
    specs = tuple(
        space.spec(
            config,
            replicate=replicate,
            code_fingerprint=asked["code_fingerprint"],
            data_fingerprint=asked["data_fingerprint"],
        )
        for replicate, config in rounds(configs + added.configs, asked["repeats"], seed=space.seed)
    )
    counted = f"{plural(len(configs), 'configuration')}{_added_words(added, choice)}"
    described = f"{counted}{_times(asked['repeats'])}" + (f" ({', '.join(notes)})" if notes else "")
    return Plan(
        name=name,
        space=space,
        specs=specs,
        description=described,
        asked=asked,
        baseline=choice,
        added=frozenset(spec.trial_id for spec in specs if spec.config in unasked),
        ledger=ledger,
        known=tuple(ledger.outcomes()),
    )


def _added(space: SearchSpace, configs: tuple[TrainingConfig, ...], choice: BaselineChoice) -> AddedTrials:
    if choice.baseline is None or not choice.adds_trials:
        return AddedTrials()
    held = () if space.lr_rule is LrRule.NONE else ("batch_size", "lr")
    return added_trials(configs, choice.baseline, allows=space.allows, protocol=space.protocol, held=held)


def _times(repeats: Repeats) -> str:
    if repeats == AUTO_REPEATS:
        return f" × 1 run, and {ExtraBudget()}"
    return f" × {repeats} repeats" if repeats != 1 else ""


def _added_words(added: AddedTrials, choice: BaselineChoice) -> str:
    """` + 3 baselines and 1 twin added by --baseline auto`, or nothing."""
    counts = ((len(added.baselines), "baseline"), (len(added.twins), "twin"))
    words = " and ".join(plural(count, noun) for count, noun in counts if count)
    return f" + {words} added by --baseline {choice.text}" if words else ""
