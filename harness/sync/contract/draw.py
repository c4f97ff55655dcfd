"""Examples of what a type of the wire allows, the plainest first, for that is what a counterexample shrinks to."""

from collections.abc import Mapping
from typing import Any, Final

from hypothesis import strategies as st

NUMBERS: Final = (1056, 784, 16, 1)
"""Whole numbers that are recognised when they turn up elsewhere."""
REALS: Final = (10.5, 2.25)
WORDS: Final = ("one", "another")
LARGEST: Final = 2**53
"""The whole numbers up to here are the same in every language that might speak on the wire."""


def values(shape: Mapping[str, Any], base: Any = None, *, none: bool = True) -> st.SearchStrategy[Any]:
    """Any value of a type.

    Args:
        shape: The type, as data.
        base: What is said there as a rule, which counts among the examples.
        none: Whether None may be drawn, where the type allows it.
    """
    drawn = _of(shape, none=none)
    return drawn if base is None else st.one_of(drawn, st.just(base))


def allows_none(shape: Mapping[str, Any]) -> bool:
    """Whether a field of this type may be None."""
    return shape["is"] == "none" or (shape["is"] == "any of" and any(map(allows_none, shape["of"])))


def drawable(shape: Mapping[str, Any]) -> bool:
    """Whether there are examples of this type, other than None."""
    if shape["is"] == "any of":
        return any(map(drawable, shape["of"]))
    return shape["is"] not in {"none", "other"}


def plainest(shape: Mapping[str, Any]) -> list[Any]:
    """A few values of a type, to try without drawing."""
    found: list[Any] = []
    match shape["is"]:
        case "int":
            found = [number for number in NUMBERS if _within(number, shape)]
        case "float":
            found = list(REALS)
        case "str":
            found = list(WORDS)
        case "bool":
            found = [True, False]
        case "one of":
            found = list(shape["values"][:3])
        case "list":
            found = [[one] for one in plainest(shape["of"])[:2]]
        case "any of":
            found = [value for part in shape["of"] for value in plainest(part)]
        case "object":
            found = _objects(shape)
    return found


def _objects(shape: Mapping[str, Any]) -> list[Any]:
    """The object with nothing said that need not be said, and that with one thing more."""
    least = {part["name"]: plainest(part["type"])[0] for part in shape["fields"] if part["required"]}
    more = [
        {**least, part["name"]: value}
        for part in shape["fields"]
        for value in plainest(part["type"])[:1]
        if part["name"] not in least
    ]
    return [least, *more[-1:]]


def _of(shape: Mapping[str, Any], *, none: bool) -> st.SearchStrategy[Any]:
    drawn: st.SearchStrategy[Any] = st.nothing()
    match shape["is"]:
        case "int" | "float" | "str":
            drawn = _scalar(shape)
        case "bool":
            drawn = st.sampled_from([True, False])
        case "one of":
            drawn = st.sampled_from(shape["values"])
        case "none":
            drawn = st.none()
        case "list":
            drawn = st.lists(_of(shape["of"], none=True), max_size=3)
        case "object":
            drawn = _object(shape)
        case "any of":
            parts = [part for part in shape["of"] if drawable(part)]
            last = [st.none()] if none and allows_none(shape) else []
            drawn = st.one_of(*(_of(part, none=none) for part in parts), *last)
    return drawn


def _scalar(shape: Mapping[str, Any]) -> st.SearchStrategy[Any]:
    least = shape.get("least", 0)
    match shape["is"]:
        case "int":
            known = [number for number in NUMBERS if _within(number, shape)]
            any_number = st.integers(least, shape.get("most", LARGEST))
            return st.one_of(st.sampled_from(known), any_number) if known else any_number
        case "float":
            any_real = st.floats(least, shape.get("most", 1e9), allow_nan=False, allow_infinity=False)
            return st.one_of(st.sampled_from(REALS), any_real)
        case _:
            return st.one_of(st.sampled_from(WORDS), st.text(min_size=least, max_size=20))


def _object(shape: Mapping[str, Any]) -> st.SearchStrategy[Any]:
    required = {part["name"]: _of(part["type"], none=True) for part in shape["fields"] if part["required"]}
    optional = {part["name"]: _of(part["type"], none=True) for part in shape["fields"] if not part["required"]}
    return st.fixed_dictionaries(required, optional=optional)


def _within(number: int, shape: Mapping[str, Any]) -> bool:
    return bool(shape.get("least", number) <= number <= shape.get("most", number))
