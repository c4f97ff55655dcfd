"""The patterns of `match` statements, held against known and unknown values."""

import ast
from collections.abc import Callable
from typing import Any

from staticfire.harness.scan import containers, operators
from staticfire.harness.scan.base import Unknown
from staticfire.harness.scan.modules import pattern_names
from staticfire.harness.scan.values import Class, External, Instance, Items, Joined, Keys, Made, Member, deeply_known

Evaluate = Callable[[ast.expr], Any]
_BUILTIN = {f"builtins.{kind.__name__}": kind for kind in (str, int, float, bool, list, dict, tuple, bytes, set)}


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
    kind = _BUILTIN.get(wanted.name) if isinstance(wanted, External) else None
    if kind is not None and not pattern.kwd_attrs and len(pattern.patterns) <= 1:
        if isinstance(value, Unknown | External | Made):
            return None
        fits = (kind is str) if isinstance(value, Joined) else isinstance(value, kind)
        if fits and pattern.patterns:
            return matches(pattern.patterns[0], value, evaluate, bound)
        return fits
    if isinstance(wanted, Class) and not pattern.patterns and not pattern.kwd_attrs:
        if isinstance(value, Instance) and value.cls is wanted:
            return True
        if isinstance(value, Member) and value.cls is wanted:
            return True
        return False if deeply_known(value) else None
    return None
