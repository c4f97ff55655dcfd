"""Functions without effects, applied to known values, within bounds."""

import itertools
import json
import math
import posixpath
import shlex
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from staticfire.harness.scan.base import Limits, Unknown
from staticfire.harness.scan.containers import TooLarge, duplicate, hashable, sequence, weight
from staticfire.harness.scan.values import Items, Joined, Keys, Rest, Text, deeply_known, unmixed

FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "int": int,
    "float": float,
    "bool": bool,
    "str": str,
    "repr": repr,
    "len": len,
    "abs": abs,
    "min": min,
    "max": max,
    "sum": sum,
    "any": any,
    "all": all,
    "round": round,
    "ord": ord,
    "chr": chr,
    "divmod": divmod,
    "sorted": lambda *args, **kwargs: Items(sorted(*args, **kwargs)),
    "reversed": lambda value: Items(reversed(value)),
    "frozenset": frozenset,
    "json.dumps": json.dumps,
    "json.loads": json.loads,
    "shlex.split": lambda text: Items(shlex.split(text)),
    "shlex.join": shlex.join,
    "shlex.quote": shlex.quote,
    "textwrap.dedent": textwrap.dedent,
    "os.path.join": posixpath.join,
    "os.path.basename": posixpath.basename,
    "os.path.dirname": posixpath.dirname,
    "os.path.splitext": posixpath.splitext,
    "math.ceil": lambda value: -int(-value // 1),
    "math.floor": lambda value: int(value // 1),
    "math.prod": math.prod,
}
"""Dotted name -> what it does to known values."""

STRUCTURAL = frozenset({
    "list", "tuple", "set", "dict", "zip", "enumerate", "range", "copy.copy", "copy.deepcopy", "itertools.product",
    "itertools.chain", "itertools.chain.from_iterable", "itertools.combinations", "itertools.permutations",
    "collections.defaultdict", "collections.OrderedDict", "types.MappingProxyType", "typing.cast", "cast", "iter",
    "next",
})  # fmt: skip
"""Functions that only rearrange: their arguments may hold values that are not known."""


def apply(name: str, args: list[Any], keywords: Mapping[str, Any], limits: Limits) -> Any:
    """Apply a known function to known values; `NotImplemented` if it is none of ours.

    Raises:
        TooLarge: The result would pass the limits.
    """
    if name not in {"str", "repr"} and name not in STRUCTURAL:
        args = [unmixed(arg) for arg in args]
    if name in STRUCTURAL:
        return _structural(name, args, keywords, limits)
    function = FUNCTIONS.get(name)
    if function is None:
        return NotImplemented
    if name == "len" and args and isinstance(args[0], list | dict | tuple | set | str | range):
        return _length(args[0])
    if name == "str" and len(args) == 1 and isinstance(args[0], Joined):
        return args[0]
    if sum(weight(arg, limits.elements) for arg in args if not isinstance(arg, str | int | float)) >= limits.elements:
        raise TooLarge
    if name == "bool" or not all(deeply_known(arg) for arg in (*args, *keywords.values())):
        return Unknown("value", name)
    if name == "str" and len(args) == 1 and isinstance(args[0], Text):
        return args[0]
    if _costly(name, args):
        raise TooLarge
    try:
        return function(*args, **keywords)
    except Exception:  # noqa: BLE001 - whatever the source would raise here, it has no value
        return Unknown("error", name)


def _costly(name: str, args: list[Any]) -> bool:
    """Whether the work that a function does is out of proportion to what it is given."""
    if any(_huge(arg) for arg in args):
        return True
    if name == "shlex.split":  # it puts its words together character by character
        return any(isinstance(arg, str) and len(arg) > 20_000 for arg in args)
    if name == "sum" and len(args) > 1:  # lists are copied again and again
        return sum(weight(item, 10_000) for item in sequence(args[0]) or ()) > 2_000
    return name == "math.prod" and any(isinstance(item, int) and item.bit_length() > 512 for item in args[0])


def _huge(value: Any) -> bool:
    return (isinstance(value, int) and value.bit_length() > 10_000) or (
        isinstance(value, str | bytes) and len(value) > 10**6
    )


def _length(value: Any) -> Any:
    if isinstance(value, Keys) and value.rest is not None:
        return Unknown("value", "len")
    if isinstance(value, list | tuple) and any(isinstance(item, Rest) for item in value):
        return Unknown("value", "len")
    return len(value)


def _structural(name: str, args: list[Any], keywords: Mapping[str, Any], limits: Limits) -> Any:
    if name in {"typing.cast", "cast"}:
        return args[1] if len(args) == 2 else Unknown("call", name)
    if name == "next":
        return _next(args)
    if name in {"copy.copy", "copy.deepcopy"}:
        return duplicate(args[0]) if args else Unknown("call", name)
    if name == "range":
        return _range(args)
    if name in {"dict", "collections.OrderedDict", "types.MappingProxyType", "collections.defaultdict"}:
        return _dict(args[1:] if name.endswith("defaultdict") else args, keywords)
    return _rearrange(name, args, keywords, limits)


def _next(args: list[Any]) -> Any:
    found = sequence(args[0]) if args else None
    if found is None or (not found and len(args) < 2):
        return Unknown("value", "next")
    return found[0] if found else args[1]


def _range(args: list[Any]) -> Any:
    if not all(isinstance(arg, int) for arg in args) or not args:
        return Unknown("value", "range")
    try:
        return range(*args)
    except (ValueError, TypeError):
        return Unknown("error", "range")


def _dict(args: list[Any], keywords: Mapping[str, Any]) -> Any:
    made = Keys()
    if args:
        first = args[0]
        if isinstance(first, dict):
            made = Keys(first)
        elif (pairs := sequence(first)) is not None:
            for pair in pairs:
                items = sequence(pair)
                if items is None or len(items) != 2 or not hashable(items[0]):
                    return Unknown("value", "dict")
                made[items[0]] = items[1]
        else:
            made.rest = first if isinstance(first, Unknown) else Unknown("value", "dict")
    made.update(keywords)
    made.inherit(keywords)
    return made


def _rearrange(name: str, args: list[Any], keywords: Mapping[str, Any], limits: Limits) -> Any:
    if not args and name in {"list", "tuple", "set", "iter"}:
        return {"list": Items(), "tuple": (), "set": set()}.get(name, Unknown("call", name))
    if name in {"list", "tuple"} and isinstance(args[0], list | tuple):
        return Items(args[0]) if name == "list" else tuple(args[0])
    if name == "itertools.chain.from_iterable":
        inner = sequence(args[0]) if args else None
        if inner is None:
            return Unknown("value", name)
        args, name = list(inner), "itertools.chain"
    # What follows the first argument of these is a number.
    counted = name in {"enumerate", "itertools.combinations", "itertools.permutations"}
    known: list[Sequence[Any]] = []
    for arg in args[:1] if counted else args:
        elements = sequence(arg)
        if elements is None:
            return arg if isinstance(arg, Unknown) else Unknown("value", name)
        if len(elements) > limits.elements:
            raise TooLarge
        known.append(elements)
    if not known and name not in {"zip", "itertools.chain", "itertools.product"}:
        return Unknown("call", name)
    return _REARRANGED[name](known, args[1:] if counted else [], keywords, limits)


def _set(known: list[Sequence[Any]], *_: Any) -> Any:
    return set(known[0]) if all(hashable(item) for item in known[0]) else Unknown("value", "set")


def _enumerate(known: list[Sequence[Any]], rest: list[Any], keywords: Mapping[str, Any], _: Limits) -> Any:
    start = rest[0] if rest else keywords.get("start", 0)
    return Items(enumerate(known[0], start)) if isinstance(start, int) else Unknown("value", "enumerate")


def _product(known: list[Sequence[Any]], _: list[Any], keywords: Mapping[str, Any], limits: Limits) -> Any:
    repeat = keywords.get("repeat", 1)
    if not isinstance(repeat, int) or repeat < 0:
        return Unknown("value", "itertools.product")
    size = math.prod(max(len(elements), 1) for elements in known)
    if repeat > limits.elements or (size > 1 and repeat > 64) or size**repeat > limits.elements:
        raise TooLarge
    return Items(itertools.product(*known, repeat=repeat))


def _chosen(choose: Callable[[Sequence[Any], int], Any], ways: Callable[[int, int], int]) -> Callable[..., Any]:
    def made(known: list[Sequence[Any]], rest: list[Any], _: Mapping[str, Any], limits: Limits) -> Any:
        count = rest[0] if rest else len(known[0])
        if not isinstance(count, int) or count < 0:
            return Unknown("value", choose.__name__)
        if len(known[0]) > 1_000 or ways(len(known[0]), count) > limits.elements:
            raise TooLarge
        return Items(choose(known[0], count))

    return made


_REARRANGED: Mapping[str, Callable[..., Any]] = {
    "list": lambda known, *_: Items(known[0]),
    "iter": lambda known, *_: Items(known[0]),
    "tuple": lambda known, *_: tuple(known[0]),
    "set": _set,
    "zip": lambda known, *_: Items(zip(*known, strict=False)),
    "enumerate": _enumerate,
    "itertools.product": _product,
    "itertools.chain": lambda known, *_: Items(itertools.chain(*known)),
    "itertools.combinations": _chosen(itertools.combinations, math.comb),
    "itertools.permutations": _chosen(itertools.permutations, math.perm),
}
