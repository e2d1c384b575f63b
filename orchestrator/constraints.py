"""Which configurations a space leaves out: expressions over the knobs, in a language too small to do harm.

Names of knobs, literals, comparisons (also chained), `in` with a tuple or list, `and`, `or`, `not`. Nothing is ever
given to Python's own evaluation.
"""

import ast
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from trainables.faults import LONGEST_SHOWN, Place, did_you_mean, given
from trainables.knob_values import KNOB_RULES, KnobKind, parse_knob

LONGEST_TEXT = 2000
"""Characters of one constraint."""

ALLOWED = "a constraint has only names of knobs, literals, comparisons, and, or, not, and in with a list"

Values = Mapping[str, Any]
"""A value for every knob, by its name."""
Condition = Callable[[Values], bool]
Operand = Callable[[Values], Any]

_ORDER: Mapping[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_EQUALITY: Mapping[type[ast.cmpop], Callable[[Any, Any], bool]] = {ast.Eq: operator.eq, ast.NotEq: operator.ne}
_MEMBERSHIP: Mapping[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.In: lambda item, items: item in items,
    ast.NotIn: lambda item, items: item not in items,
}
_YAML_WORDS: Mapping[str, bool | None] = {"true": True, "false": False, "null": None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraint:
    """What every configuration must satisfy; made by `parse_constraint`."""

    text: str
    place: Place | None = field(default=None, compare=False)
    """Where it was written."""

    def allows(self, values: Values) -> bool:
        """Raises `ValueError` where the values cannot be compared as the text says."""
        try:
            return _condition(self.text)(values)
        except TypeError:
            compared = ", ".join(f"{name} {given(values[name])}" for name in _knobs_of(self.text))
            raise ValueError(f"{self.text}: cannot be decided for {compared}, which cannot all be compared") from None


def parse_constraint(value: object, *, place: Place | None = None) -> Constraint:
    """Raises `ValueError` with what is wrong in the text: also a comparison that could never hold, by a misspelling."""
    if not isinstance(value, str):
        raise ValueError(f"must be text, such as batch_size >= 64 or compile == 'off', got {given(value)}")
    if len(value) > LONGEST_TEXT:
        raise ValueError(f"must be at most {LONGEST_TEXT} characters long, got {len(value)}; split it at its ands")
    text = " ".join(value.split())
    _condition(text)
    if not _knobs_of(text):
        raise ValueError(f"names no knob, and so says the same of every configuration: {given(text)}")
    return Constraint(text=text, place=place)


@cache
def _condition(text: str) -> Condition:
    return _compiled(_parsed(text).body)


def _parsed(text: str) -> ast.Expression:
    try:
        return ast.parse(text, mode="eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        problem = error.msg if isinstance(error, SyntaxError) else "too deeply nested"
        raise ValueError(f"{given(text)} is no expression ({problem}); {ALLOWED}; equality is written ==") from None


def _knobs_of(text: str) -> list[str]:
    names = [node.id for node in ast.walk(_parsed(text)) if isinstance(node, ast.Name) and node.id in KNOB_RULES]
    return list(dict.fromkeys(names))


def _compiled(node: ast.expr) -> Condition:
    match node:
        case ast.BoolOp(op=ast.And(), values=parts):
            conditions = [_compiled(part) for part in parts]
            return lambda values: all(condition(values) for condition in conditions)
        case ast.BoolOp(op=ast.Or(), values=parts):
            conditions = [_compiled(part) for part in parts]
            return lambda values: any(condition(values) for condition in conditions)
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            condition = _compiled(inner)
            return lambda values: not condition(values)
        case ast.Compare(left=left, ops=operators, comparators=others):
            sides = [left, *others]
            pairs = [_comparison(*pair) for pair in zip(sides, operators, others, strict=False)]
            return lambda values: all(pair(values) for pair in pairs)
        case ast.Name(id=name) if name in KNOB_RULES and KNOB_RULES[name].kind is KnobKind.SWITCH:
            return lambda values: bool(values[name])
    raise ValueError(f"{_source(node)} is no condition; {_condition_advice(node)}")


def _condition_advice(node: ast.expr) -> str:
    if isinstance(node, ast.Name) and node.id in KNOB_RULES:
        return f"compare it, as in {node.id} == …"
    if isinstance(node, ast.Name):
        return _unknown_name(node.id)
    return ALLOWED


def _comparison(left: ast.expr, operation: ast.cmpop, right: ast.expr) -> Condition:
    kind = type(operation)
    if kind in _ORDER:
        return _applied(_ORDER[kind], _ordered(left), _ordered(right))
    if kind in _EQUALITY:
        return _applied(_EQUALITY[kind], _operand(left, beside=right), _operand(right, beside=left))
    if kind in _MEMBERSHIP:
        if not isinstance(right, (ast.Tuple, ast.List)) or not right.elts:
            raise ValueError(f"in needs a list of values at its right, such as (64, 256), got {_source(right)}")
        items = [_operand(item, beside=left) for item in right.elts]
        beside = next((item for item in right.elts if isinstance(item, ast.Name)), left)
        return _applied(
            _MEMBERSHIP[kind], _operand(left, beside=beside), lambda values: [item(values) for item in items]
        )
    raise ValueError(f"{_source(left)} is compared with an operator that is not known; {ALLOWED}")


def _applied(operation: Callable[[Any, Any], bool], left: Operand, right: Operand) -> Condition:
    return lambda values: bool(operation(left(values), right(values)))


def _ordered(node: ast.expr) -> Operand:
    """An operand of <, <=, > or >=: a number."""
    if isinstance(node, ast.Name) and node.id in KNOB_RULES:
        rule = KNOB_RULES[node.id]
        if rule.kind not in (KnobKind.WHOLE, KnobKind.NUMBER):
            raise ValueError(f"{node.id} has no order ({rule.allowed}); compare it with ==, != or in")
        return operator.itemgetter(node.id)
    literal = _literal(node)
    if isinstance(literal, bool) or not isinstance(literal, (int, float)):
        raise ValueError(f"{_source(node)} has no order; numbers alone are compared with <, <=, > and >=")
    return lambda _: literal


def _operand(node: ast.expr, *, beside: ast.expr) -> Operand:
    """An operand of ==, != or in. A literal beside a knob is read as that knob's value, as the YAML would mean it."""
    if isinstance(node, ast.Name) and node.id in KNOB_RULES:
        return operator.itemgetter(node.id)
    literal = _literal(node)
    if isinstance(beside, ast.Name) and beside.id in KNOB_RULES:
        try:
            literal = parse_knob(beside.id, literal)
        except ValueError as error:
            raise ValueError(f"compares {beside.id} with {_source(node)}, which it never is: {error}") from None
    return lambda _: literal


def _literal(node: ast.expr) -> str | int | float | bool | None:
    match node:
        case ast.Constant(value=(str() | int() | float() | None) as value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=(int() | float()) as value)) if not isinstance(
            value, bool
        ):
            return -value
        case ast.Name(id=name) if name in _YAML_WORDS:
            return _YAML_WORDS[name]
        case ast.Name(id=name):
            raise ValueError(_unknown_name(name))
    raise ValueError(f"{_source(node)} is not allowed; {ALLOWED}")


def _unknown_name(name: str) -> str:
    for knob, rule in KNOB_RULES.items():
        if rule.kind is KnobKind.TEXT and _is_value(knob, name):
            return f"{name} is no knob; as a value of {knob} it is written in quotes, '{name}'"
    return f"{name} is no knob; there are {', '.join(KNOB_RULES)}{did_you_mean(name, KNOB_RULES)}"


def _is_value(knob: str, text: str) -> bool:
    try:
        parse_knob(knob, text)
    except ValueError:
        return False
    return True


def _source(node: ast.expr) -> str:
    text = ast.unparse(node)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"
