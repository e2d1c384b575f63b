"""A YAML search space into the configurations of a sweep: all of a grid, or as many draws as are asked for."""

import hashlib
import itertools
import json
import math
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from orchestrator.constraints import Constraint, parse_constraint
from orchestrator.distributions import Fixed, Grid, KnobValues, read_knob
from orchestrator.overrides import overridden
from orchestrator.space_files import find_space
from trainables.errors import InputError
from trainables.faults import Faults
from trainables.lr_rule import LrRule, read_lr_rule, with_scaled_lr, with_written_lr
from trainables.spec_door import SPACE_KEYS, config_as_knobs, missing_knobs, read_config
from trainables.specs import KNOBS, MAIN_KNOBS, TrainingConfig, config_to_mapping
from trainables.task import Task, read_task, task_mapping
from trainables.yaml_fields import Fields, read_mapping, read_value
from trainables.yaml_reader import format_yaml

LARGEST_GRID = 100_000
"""Configurations that are asked for at once: more cannot all be meant to run."""

MOST_TRIES = 10_000
"""Draws until one satisfies the constraints."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GridExpansion:
    """Of what was asked, `configs` are the distinct ones that the constraints allow, in their order."""

    configs: tuple[TrainingConfig, ...]
    merged_duplicates: int
    """Configurations that were asked for once more, by a value written twice or by `configs`."""
    excluded_by_constraints: int
    """Distinct configurations that the constraints leave out."""


@dataclass(slots=True)
class _Computed:
    """What a space computes once, when it is first asked for."""

    grid: GridExpansion | None = None
    shuffled: tuple[TrainingConfig, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchSpace(Task):
    """A resolved space. `configs` and `knobs` hold learning rates as written, before `lr_rule`."""

    knobs: Mapping[str, KnobValues]
    """In the order of the file; the last varies fastest. All main knobs, or single values that `configs` inherits."""
    configs: tuple[TrainingConfig, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    lr_rule: LrRule = LrRule.NONE
    lr_reference_batch_size: int | None = None
    _computed: _Computed = field(default_factory=_Computed, init=False, repr=False, compare=False)

    @property
    def varies(self) -> tuple[str, ...]:
        """The knobs that are lists of several values."""
        return tuple(
            name for name, values in self.knobs.items() if isinstance(values, Grid) and len(values.distinct) > 1
        )

    @property
    def is_random(self) -> bool:
        """Whether a knob is a distribution, so that the space has no grid."""
        return any(not isinstance(values, Fixed | Grid) for values in self.knobs.values())

    def grid(self) -> GridExpansion:
        """Every configuration: the explicit ones, then the product of the knobs.

        Raises `InputError` where there is no such list, or none that could be run.
        """
        if self._computed.grid is None:
            self._computed.grid = self._expanded()
        return self._computed.grid

    def sample(self, index: int) -> TrainingConfig:
        """The draw of that index, from 0: the same whatever was drawn before.

        A space with distributions gives its explicit configurations first. A grid is drawn without replacement, and
        starts again after its last. Raises `InputError` where the constraints leave nothing to draw.
        """
        if index < 0:
            raise ValueError(f"draws are counted from 0, got {index}")
        if not self._is_drawn:
            shuffled = self._shuffled()
            return shuffled[index % len(shuffled)]
        explicit = self._explicit()
        return explicit[index] if index < len(explicit) else self._scaled([self._drawn(index)])[0]

    def allows(self, config: TrainingConfig) -> bool:
        """Whether the constraints let in a configuration whose lr follows `lr_rule` already, as those given out do."""
        return self._allows(with_written_lr(config, self.lr_rule, self.lr_reference_batch_size))

    def to_yaml(self) -> str:
        """The space as it was resolved, which `parse_space` reads back equal."""
        inherited = {name: values.value for name, values in self.knobs.items() if isinstance(values, Fixed)}
        reference = self.lr_reference_batch_size
        return format_yaml(
            {
                **task_mapping(self),
                "knobs": {name: values.asked() for name, values in self.knobs.items()},
                "configs": [config_as_knobs(config, inherited) for config in self.configs],
                "constraints": [constraint.text for constraint in self.constraints],
                "lr_rule": self.lr_rule,
                **({} if reference is None else {"lr_reference_batch_size": reference}),
            }
        )

    @property
    def _asked(self) -> int:
        """Configurations that a grid asks for, duplicates included."""
        product = math.prod(len(values.values) for values in self.knobs.values() if isinstance(values, Fixed | Grid))
        return len(self.configs) + (0 if missing_knobs(self.knobs) else product)

    @property
    def _is_drawn(self) -> bool:
        return self.is_random or self._asked > LARGEST_GRID

    def _expanded(self) -> GridExpansion:
        if self.is_random:
            raise InputError("knobs: a distribution has no grid; give --search random, or list the values")
        if self._asked > LARGEST_GRID:
            raise InputError(
                f"knobs: {self._asked:,} configurations are more than a grid may have ({LARGEST_GRID:,}); "
                "list fewer values, or give --search random"
            )
        written = [*self.configs, *self._product()]
        distinct = dict.fromkeys(written)
        allowed = [config for config in distinct if self._allows(config)]
        if not allowed:
            raise InputError(self._excluded(f"all {len(distinct)} configurations are left out"))
        configs = self._scaled(allowed)
        return GridExpansion(
            configs=configs,
            merged_duplicates=len(written) - len(distinct) + len(allowed) - len(configs),
            excluded_by_constraints=len(distinct) - len(allowed),
        )

    def _product(self) -> Iterator[TrainingConfig]:
        if missing_knobs(self.knobs):
            return
        lists = [values.values for values in self.knobs.values() if isinstance(values, Fixed | Grid)]
        for combination in itertools.product(*lists):
            yield TrainingConfig(**dict(zip(self.knobs, combination, strict=True)))

    def _allows(self, config: TrainingConfig) -> bool:
        values = config_to_mapping(config)
        for constraint in self.constraints:
            try:
                if not constraint.allows(values):
                    return False
            except ValueError as error:
                raise InputError(f"{constraint.place}: constraints: {error}") from error
        return True

    def _excluded(self, what: str) -> str:
        return f"{self.constraints[0].place}: constraints: {what}; loosen a constraint, or give other values"

    def _scaled(self, configs: Iterable[TrainingConfig]) -> tuple[TrainingConfig, ...]:
        """Distinct configurations after the rule."""
        try:
            scaled = [with_scaled_lr(config, self.lr_rule, self.lr_reference_batch_size) for config in configs]
        except ValueError as error:
            raise InputError(f"lr_rule: {error}; give another lr or lr_reference_batch_size") from error
        return tuple(dict.fromkeys(scaled))

    def _explicit(self) -> tuple[TrainingConfig, ...]:
        return self._scaled(config for config in dict.fromkeys(self.configs) if self._allows(config))

    def _shuffled(self) -> tuple[TrainingConfig, ...]:
        """The grid by a hash of the seed and each configuration: a longer grid keeps the order of its part."""
        if self._computed.shuffled is None:
            ordered = sorted(self.grid().configs, key=lambda config: _hash(self.seed, config_to_mapping(config)))
            self._computed.shuffled = tuple(ordered)
        return self._computed.shuffled

    def _drawn(self, index: int) -> TrainingConfig:
        for attempt in range(MOST_TRIES):
            values = {name: self._value(name, index, attempt) for name in self.knobs}
            if self._allows(config := TrainingConfig(**values)):
                return config
        raise InputError(self._excluded(f"none of {MOST_TRIES:,} draws satisfies them"))

    def _value(self, name: str, index: int, attempt: int) -> Any:
        values = self.knobs[name]
        if isinstance(values, Fixed):
            return values.value
        # A generator of its own for every value: a knob more or less leaves the draws of the others as they were.
        return values.draw(random.Random(_hash(self.seed, index, attempt, name)))  # noqa: S311 (no secret)


def load_space(source: str | None, *, overrides: Sequence[str] = (), seed: int | None = None) -> SearchSpace:
    """A space by the path of its file or the name of a ready one; None stands for the default, `quick`.

    `overrides` are `KEY=VALUE` with dotted keys, as `--set` takes them. Raises `InputError` with every fault.
    """
    text, name = find_space(source)
    return parse_space(text, name=name, overrides=overrides, seed=seed)


def parse_space(text: str, *, name: str, overrides: Sequence[str] = (), seed: int | None = None) -> SearchSpace:
    """As `load_space`, from the text itself; `name` stands for the file in messages."""
    faults = Faults()
    root = read_mapping(text, name, allowed=SPACE_KEYS, faults=faults)
    fields = Fields(overridden(root, overrides, seed, faults), allowed=SPACE_KEYS, faults=faults)
    space = _read_space(fields)
    faults.raise_all()
    if space.is_random or space._asked > LARGEST_GRID:
        space.sample(len(space.configs))
    else:
        space.grid()
    return space


def _read_space(fields: Fields) -> SearchSpace:
    task = read_task(fields)
    knobs = _read_knobs(fields)
    rule, reference = read_lr_rule(fields)
    return SearchSpace(
        model=task.model,
        model_args=task.model_args,
        dataset=task.dataset,
        dataset_args=task.dataset_args,
        num_classes=task.num_classes,
        protocol=task.protocol,
        seed=task.seed,
        knobs=knobs,
        configs=_read_configs(fields, knobs),
        constraints=_read_constraints(fields),
        lr_rule=rule,
        lr_reference_batch_size=reference,
    )


def _read_knobs(fields: Fields) -> dict[str, KnobValues]:
    node = fields.node("knobs")
    inner = None if node is None else Fields(node, path="knobs", allowed=KNOBS, faults=fields.faults)
    knobs = {} if inner is None else {name: read_knob(name, entry, fields.faults) for name, entry in inner.known()}
    makes_product = any(not isinstance(values, Fixed) for values in knobs.values())
    if (makes_product or not any(fields.items("configs"))) and missing_knobs(knobs):
        fields.fault("knobs", f"{missing_knobs(knobs)}; every configuration has {', '.join(MAIN_KNOBS)}")
    return knobs


def _read_configs(fields: Fields, knobs: Mapping[str, KnobValues]) -> tuple[TrainingConfig, ...]:
    inherited = {name: values.value for name, values in knobs.items() if isinstance(values, Fixed)}
    found = [
        read_config(node, f"configs[{index}]", inherited=inherited, faults=fields.faults)
        for index, node in enumerate(fields.items("configs"))
    ]
    return tuple(config for config in found if config is not None)


def _read_constraints(fields: Fields) -> tuple[Constraint, ...]:
    found = [
        read_value(node, "constraints", partial(parse_constraint, place=node.place), None, fields.faults)
        for node in fields.items("constraints")
    ]
    return tuple(constraint for constraint in found if constraint is not None)


def _hash(*parts: Any) -> int:
    text = json.dumps(parts, sort_keys=True)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8])
