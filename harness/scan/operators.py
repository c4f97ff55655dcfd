"""Operators over known and unknown values."""

import ast
import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

from staticfire.harness.scan import containers
from staticfire.harness.scan.base import Unknown
from staticfire.harness.scan.budget import ELEMENT, current
from staticfire.harness.scan.modules import Module
from staticfire.harness.scan.state import (
    Construct,
)
from staticfire.harness.scan.values import (
    Class,
    External,
    Function,
    Items,
    Joined,
    Keys,
    Made,
    Member,
    ModuleValue,
    Rest,
    deeply_known,
    is_known,
    unmixed,
)
from staticfire.harness.scan.versions import Version

_BINARY: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.BitOr: operator.or_,
    ast.BitAnd: operator.and_,
    ast.BitXor: operator.xor,
}

UNARY: Mapping[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Invert: operator.invert,
}

_COMPARE: Mapping[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}

_EXCEPTION = re.compile(r"^[A-Z]\w*(?:Error|Exception|Warning)$")

_PIECES = 64
"""Pieces of a string that are known or not, in turn."""
BITS = 4096
"""Integers of more bits are not followed."""


def unknown(reason: str, detail: str = "") -> Unknown:
    """An unknown value without candidates."""
    return Unknown(reason, detail)


def truth(value: Any) -> bool | None:
    """Whether a value is true; None where that is not known."""
    if isinstance(value, Unknown):
        outcomes = {truth(item) for item in value.candidates}
        return outcomes.pop() if len(outcomes) == 1 else None
    if isinstance(value, Keys) and value.rest is not None and not value:
        return None
    if isinstance(value, list) and value and all(isinstance(item, Rest) for item in value):
        return None
    if isinstance(value, Joined):
        return True if any(isinstance(piece, str) and piece for piece in value.pieces) else None
    if is_known(value):
        return bool(value)
    if isinstance(value, Member) and value.mixed:
        return bool(value.value)
    if isinstance(value, Made | Function | Class | Member | ModuleValue):
        return True
    return None


def joined(pieces: list[Any]) -> Any:
    """A string out of pieces, some of which may not be known."""
    flat: list[Any] = []
    for piece in pieces:
        for part in piece.pieces if isinstance(piece, Joined) else (piece,):
            if isinstance(part, str) and flat and isinstance(flat[-1], list):
                flat[-1].append(part)
            else:
                flat.append([part] if isinstance(part, str) else part)
    if len(flat) > _PIECES:
        raise containers.TooLarge
    current().make(sum(len(text) for part in flat if isinstance(part, list) for text in part))
    flat = ["".join(part) if isinstance(part, list) else part for part in flat]
    if all(isinstance(part, str) for part in flat):
        return flat[0] if flat else ""
    if len(flat) == 1:
        return flat[0]
    return Joined(tuple(flat))


def derived(source: list[Any], made: Items) -> Items:
    """Let a list that continues a command be that command."""
    construct = getattr(source, "command", None)
    if isinstance(construct, Construct):
        made.command = construct
        construct.command = made
    return made


def either(others: list[Any], value: Any, text: str = "") -> Any:
    """One of several values, where reading cannot tell which."""
    distinct = [value]
    for other in others:
        if not any(containers.same(item, other) for item in distinct):
            distinct.insert(-1, other)
    return value if len(distinct) == 1 else Unknown("condition", text, tuple(distinct))


def digit_runs(text: str) -> list[str]:
    """The runs of digits in a text: a long one may be a width."""
    return "".join(char if char.isdigit() else " " for char in text).split()


def combine(kind: type[ast.operator], left: Any, right: Any, node: ast.AST, module: Module, limit: int) -> Any:
    """`left op right`, written at a node of a module.

    Raises:
        TooLarge: The result would have more elements than `limit`.
    """
    left, right = unmixed(left), unmixed(right)
    if isinstance(left, list | tuple | dict | str | Joined) or isinstance(right, list | str | Joined):
        made = _gathered(kind, left, right, limit)
        if made is not None:
            return made
    if kind is ast.Div and isinstance(left, External | Unknown):
        return unknown("path", module.excerpt(node))
    for side in (left, right):
        if isinstance(side, Unknown):
            return unknown(side.reason, side.detail)
    result = _arithmetic(kind, left, right) if deeply_known(left) and deeply_known(right) else unknown("value")
    return unknown(result.reason, module.excerpt(node)) if isinstance(result, Unknown) else result


def _gathered(kind: type[ast.operator], left: Any, right: Any, limit: int) -> Any:
    """Lists, dicts and strings put together although a part may be unknown; None if they are no such two."""
    if kind is ast.Add and isinstance(left, list | tuple):
        containers.charge(len(left))
        made = list(left)
        containers.extend(made, right)
        if len(made) > limit:
            raise containers.TooLarge
        if isinstance(left, tuple):
            return tuple(made)
        return derived(left, Items(made))
    if kind is ast.Add and isinstance(right, list) and isinstance(left, Unknown):
        return Items([Rest(left), *right])
    if kind is ast.Add and isinstance(left, str | Joined) and isinstance(right, str | Joined | Unknown):
        return joined([left, right])
    if kind is ast.Add and isinstance(left, Unknown) and isinstance(right, str | Joined):
        return joined([left, right])
    if kind is ast.BitOr and isinstance(left, dict):
        containers.charge(len(left))
        merged = Keys(left)
        containers.merge(merged, right)
        return merged
    return None


def _arithmetic(kind: type[ast.operator], left: Any, right: Any) -> Any:
    function = _BINARY.get(kind)
    if kind is ast.Pow and isinstance(left, int | float) and isinstance(right, int) and abs(right) <= 64:
        function = operator.pow
    if kind is ast.LShift and isinstance(right, int) and 0 <= right <= 64:
        function = operator.lshift
    if kind is ast.Mult and any(isinstance(side, str | bytes | list | tuple) for side in (left, right)):
        size, count = (left, right) if isinstance(right, int) else (right, left)
        if not isinstance(count, int) or isinstance(size, int | float):
            raise containers.TooLarge
        current().make(len(size) * max(count, 0) * (1 if isinstance(size, str | bytes) else ELEMENT))
    if kind is ast.Mod and isinstance(left, str):
        if "*" in left or any(len(run) > 3 for run in digit_runs(left)):
            raise containers.TooLarge  # a width
        current().make(len(left))
    if function is None or any(isinstance(side, int) and side.bit_length() > BITS for side in (left, right)):
        return unknown("value")
    try:
        result = function(left, right)
    except Exception:  # noqa: BLE001 - whatever the source would raise here, it has no value
        return unknown("error")
    return Items(result) if type(result) is list else result


def compare(op: ast.cmpop, left: Any, right: Any) -> bool | None:
    """Whether a comparison holds; None where that is not known."""
    if isinstance(op, ast.Is | ast.IsNot):
        same = _identical(left, right)
        return None if same is None else same is isinstance(op, ast.Is)
    if not (isinstance(left, Member) and isinstance(right, Member)):
        left, right = unmixed(left), unmixed(right)
    if isinstance(op, ast.In | ast.NotIn):
        inside = _contains(right, left)
        return None if inside is None else inside is isinstance(op, ast.In)
    if isinstance(left, External | Member | Class | Function) and type(left) is type(right):
        equal = left == right
        # Two names of foreign things may be two names of one thing, so only equality is certain.
        if isinstance(op, ast.Eq | ast.NotEq) and (equal or isinstance(left, Member)):
            return equal is isinstance(op, ast.Eq)
        return None
    if isinstance(op, ast.Eq | ast.NotEq) and _class_and_value(left, right):
        return isinstance(op, ast.NotEq)
    both = isinstance(left, Version) and isinstance(right, Version)
    if not both and not (deeply_known(left) and deeply_known(right)):
        return None
    try:
        return bool(_COMPARE[type(op)](left, right))
    except TypeError:
        return None


def _class_and_value(left: Any, right: Any) -> bool:
    """Whether one side is an exception's class, known by its name, and the other a plain value."""
    for one, other in ((left, right), (right, left)):
        if isinstance(one, External) and _EXCEPTION.search(one.last) and deeply_known(other):
            return True
    return False


def _identical(left: Any, right: Any) -> bool | None:
    if left is right:
        return True
    if left is None or right is None:
        other = right if left is None else left
        if isinstance(other, Unknown):
            return None
        return None if isinstance(other, External) else False
    if isinstance(left, bool) and isinstance(right, bool):
        return left is right
    if isinstance(left, Member) and isinstance(right, Member):
        return left == right
    return None


def _contains(container: Any, item: Any) -> bool | None:
    if isinstance(container, list | tuple | set | frozenset):
        containers.charge(len(container) * containers.weight(item, 100_000))
    if isinstance(container, Joined) and isinstance(item, str):
        return True if any(isinstance(piece, str) and item in piece for piece in container.pieces) else None
    if isinstance(container, list | tuple | set | frozenset):
        container = [unmixed(one) for one in container]
    if not deeply_known(item) or not is_known(container):
        return None
    try:
        if item in container:
            return True
    except TypeError:
        return None
    closed = deeply_known(list(container) if isinstance(container, dict) else container)
    return False if closed and not (isinstance(container, Keys) and container.rest) else None
