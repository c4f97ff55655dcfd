"""The patterns of `match` statements, held against known and unknown values."""

import ast
from collections.abc import Callable
from typing import Any

from staticfire.harness.scan import containers, kinds, operators
from staticfire.harness.scan.base import Unknown
from staticfire.harness.scan.modules import pattern_names
from staticfire.harness.scan.values import External, Instance, Items, Keys, Made

Evaluate = Callable[[ast.expr], Any]
_WHOLE = frozenset(
    f"builtins.{name}"
    for name in ("bool", "bytearray", "bytes", "dict", "float", "frozenset", "int", "list", "set", "str", "tuple")
)
"""Classes whose pattern hands the whole value to the one pattern in it: `str(name)`."""


def matches(pattern: ast.pattern, value: Any, evaluate: Evaluate, bound: dict[str, Any]) -> bool | None:
    """Whether a value fits a pattern; None where that is not known.

    Args:
        pattern: The pattern.
        value: What is held against it.
        evaluate: Gives the values that a pattern names.
        bound: Takes what the pattern binds.
    """
    match pattern:
        case ast.MatchAs(pattern=inner, name=name):
            fits = True if inner is None else matches(inner, value, evaluate, bound)
            if name is not None:
                bound[name] = value
        case ast.MatchOr(patterns=inner):
            fits = _either(inner, value, evaluate, bound)
        case ast.MatchValue(value=node):
            fits = operators.compare(ast.Eq(), value, evaluate(node))
        case ast.MatchSingleton(value=wanted):
            fits = operators.compare(ast.Is(), value, wanted)
        case ast.MatchSequence(patterns=inner):
            fits = _sequence(inner, value, evaluate, bound)
        case ast.MatchMapping():
            fits = _mapping(pattern, value, evaluate, bound)
        case ast.MatchClass():
            fits = _of_class(pattern, value, evaluate, bound)
        case _:
            fits = None
    if fits is None:
        bound.update((name, Unknown("condition", "match")) for name in pattern_names(pattern) if name not in bound)
    return fits


def _all(verdicts: list[bool | None]) -> bool | None:
    return False if False in verdicts else None if None in verdicts else True


def _either(patterns: list[ast.pattern], value: Any, evaluate: Evaluate, bound: dict[str, Any]) -> bool | None:
    open_ = False
    for pattern in patterns:
        taken: dict[str, Any] = {}
        fits = matches(pattern, value, evaluate, taken)
        open_ = open_ or fits is None
        if fits:
            bound.update((name, Unknown("condition", "match") if open_ else item) for name, item in taken.items())
            return True
    return None if open_ else False


def _sequence(patterns: list[ast.pattern], value: Any, evaluate: Evaluate, bound: dict[str, Any]) -> bool | None:
    if isinstance(value, Unknown | External | Instance | Made):
        return None
    elements = containers.sequence(value) if isinstance(value, list | tuple) else None
    if elements is None:
        return None if isinstance(value, list | tuple) else False
    stars = [index for index, item in enumerate(patterns) if isinstance(item, ast.MatchStar)]
    if len(elements) < len(patterns) - len(stars) or (not stars and len(elements) != len(patterns)):
        return False
    if not stars:
        return _all([matches(p, v, evaluate, bound) for p, v in zip(patterns, elements, strict=True)])
    star = patterns[stars[0]]
    after = len(patterns) - stars[0] - 1
    end = len(elements) - after
    if isinstance(star, ast.MatchStar) and star.name is not None:
        bound[star.name] = Items(elements[stars[0] : end])
    ends = [*zip(patterns[: stars[0]], elements, strict=False)]
    ends += zip(patterns[stars[0] + 1 :], elements[end:], strict=True)
    return _all([matches(p, v, evaluate, bound) for p, v in ends])


def _mapping(pattern: ast.MatchMapping, value: Any, evaluate: Evaluate, bound: dict[str, Any]) -> bool | None:
    if not isinstance(value, dict):
        return None if isinstance(value, Unknown | External | Instance | Made) else False
    left = Keys(value)
    verdicts: list[bool | None] = []
    for key_node, inner in zip(pattern.keys, pattern.patterns, strict=True):
        key = evaluate(key_node)
        if isinstance(key, Unknown) or not containers.hashable(key):
            verdicts.append(None)
        elif key in value:
            verdicts.append(matches(inner, left.pop(key), evaluate, bound))
        else:
            verdicts.append(None if isinstance(value, Keys) and value.rest is not None else False)
    if pattern.rest is not None:
        bound[pattern.rest] = left
    return _all(verdicts)


def _of_class(pattern: ast.MatchClass, value: Any, evaluate: Evaluate, bound: dict[str, Any]) -> bool | None:
    wanted = evaluate(pattern.cls)
    fits = kinds.is_a(value, wanted)
    if not fits or not (pattern.patterns or pattern.kwd_patterns):
        return fits
    whole = isinstance(wanted, External) and wanted.name in _WHOLE and not pattern.kwd_patterns
    return matches(pattern.patterns[0], value, evaluate, bound) if whole and len(pattern.patterns) == 1 else None
