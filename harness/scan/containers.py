"""Lists, dicts and other plain containers that may hold unknown values."""

import copy
from collections.abc import Sequence
from typing import Any

from staticfire.harness.scan.base import Unknown
from staticfire.harness.scan.budget import TooLarge, current
from staticfire.harness.scan.values import Instance, Items, Keys, Made, Rest, walk

_FEW = 32
"""Elements that are not worth counting: the step that is charged for the expression counts for them."""


def charge(count: int) -> None:
    """Charge the budget for some elements that are made or walked through.

    Raises:
        TooLarge: They are too many.
    """
    if count > _FEW:
        current().elements(count)


def same(one: Any, other: Any) -> bool:
    """Whether two values are one, or equal as far as walking through them goes."""
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    try:
        for value in (one, other):
            for part in value.candidates if isinstance(value, Unknown) else (value,):
                walk(part)
    except TooLarge:
        return False
    return bool(one == other)


def sequence(value: Any) -> Sequence[Any] | None:
    """The elements of a value that can be iterated over and whose elements are all named, else None.

    Raises:
        TooLarge: They are too many.
    """
    if isinstance(value, dict | list | tuple | set | frozenset):
        charge(len(value))
    if isinstance(value, dict):
        return None if isinstance(value, Keys) and value.rest is not None else list(value)
    if isinstance(value, list | tuple):
        return None if any(isinstance(item, Rest) for item in value) else value
    if isinstance(value, str | range | bytes):
        return value
    if isinstance(value, set | frozenset):
        return sorted(value, key=repr)
    return None


def hashable(value: Any) -> bool:
    """Whether a value can be a key.

    Raises:
        TooLarge: It is too large to be walked through.
    """
    if isinstance(value, tuple | frozenset):
        walk(value)
    try:
        hash(value)
    except TypeError:
        return False
    return True


def duplicate(value: Any, memo: dict[int, Any] | None = None) -> Any:
    """A deep copy of lists, dicts, configurations and small objects, sharing what is shared; all else is the same."""
    if not isinstance(value, dict | list | tuple | set | Instance | Made):
        return value
    memo = {} if memo is None else memo
    if id(value) in memo:
        return memo[id(value)]
    made: Any = value
    if not isinstance(value, Instance | Made):
        charge(len(value))
    if isinstance(value, Keys):
        memo[id(value)] = made = Keys(value)
        for key in made:
            made[key] = duplicate(made[key], memo)
    elif isinstance(value, dict):
        memo[id(value)] = made = {}
        made.update((key, duplicate(item, memo)) for key, item in value.items())
    elif isinstance(value, list):
        memo[id(value)] = made = Items((), getattr(value, "command", None))
        made.extend(duplicate(item, memo) for item in value)
    elif type(value) is tuple:
        made = tuple(duplicate(item, memo) for item in value)
    elif isinstance(value, set):
        made = copy.copy(value)
    elif isinstance(value, Instance) and len(value.attributes) <= 40:
        memo[id(value)] = made = Instance(value.cls)
        made.attributes.update((key, duplicate(item, memo)) for key, item in value.attributes.items())
    elif isinstance(value, Made) and value.construct is None:
        made = Made(value.name, duplicate(value.keywords, memo))
    memo[id(value)] = made
    return made


def weight(value: Any, limit: int) -> int:
    """How many values a value holds, counted up to a limit."""
    count = _weight(value, limit)
    charge(count)
    return count


def _weight(value: Any, limit: int) -> int:
    if limit <= 0:
        return 0
    inner: Any = ()
    if isinstance(value, range):
        return min(limit, len(value) if value.stop - value.start < 2**62 else limit)
    if isinstance(value, dict):
        inner = value.values()
    elif isinstance(value, list | tuple):
        inner = value
    elif isinstance(value, Instance):
        inner = value.attributes.values()
    count = 1
    for item in inner:
        count += _weight(item, limit - count)
        if count >= limit:
            break
    return count


def merge(receiver: dict[Any, Any], other: Any) -> None:
    """`receiver.update(other)`, whatever `other` is."""
    if isinstance(other, dict):
        charge(len(other))
        receiver.update(other)
        if isinstance(receiver, Keys):
            receiver.inherit(other)
        return
    if other is None:
        return
    pairs = sequence(other)
    if pairs is not None and all(isinstance(pair, tuple) and len(pair) == 2 and hashable(pair[0]) for pair in pairs):
        receiver.update(dict(pairs))
    elif isinstance(receiver, Keys):
        receiver.rest = other if isinstance(other, Unknown) else Unknown("value", "update")


def extend(receiver: list[Any], other: Any) -> None:
    """`receiver.extend(other)`, whatever `other` is."""
    elements = other if isinstance(other, list | tuple) else sequence(other)
    if elements is None:
        receiver.append(Rest(other if isinstance(other, Unknown) else Unknown("value", "extend")))
    else:
        charge(len(elements))
        receiver.extend(elements)


__all__ = [
    "TooLarge", "charge", "duplicate", "extend", "hashable", "merge", "same", "sequence", "weight",
]  # fmt: skip
