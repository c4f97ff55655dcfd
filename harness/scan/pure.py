"""Functions and methods without effects, applied to known values, within bounds."""

import copy
import itertools
import json
import posixpath
import shlex
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from staticfire.harness.scan.base import Limits, Unknown
from staticfire.harness.scan.values import Instance, Items, Joined, Keys, Rest, Text, deeply_known

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
    "math.prod": lambda values: __import__("math").prod(values),
}
"""Dotted name -> what it does to known values."""

STRUCTURAL = frozenset({
    "list", "tuple", "set", "dict", "zip", "enumerate", "range", "copy.copy", "copy.deepcopy", "itertools.product",
    "itertools.chain", "itertools.chain.from_iterable", "itertools.combinations", "itertools.permutations",
    "collections.defaultdict", "collections.OrderedDict", "types.MappingProxyType", "typing.cast", "cast", "iter",
    "next",
})  # fmt: skip
"""Functions that only rearrange: their arguments may hold values that are not known."""

STRING_METHODS = frozenset({
    "format", "join", "split", "rsplit", "splitlines", "strip", "lstrip", "rstrip", "lower", "upper", "title",
    "replace", "startswith", "endswith", "removeprefix", "removesuffix", "partition", "rpartition", "capitalize",
    "count", "find", "index", "isdigit", "encode", "zfill", "casefold", "isupper", "islower", "rfind",
})  # fmt: skip
CHANGING = frozenset({
    "append", "extend", "insert", "update", "setdefault", "pop", "remove", "clear", "add", "discard", "sort",
    "reverse", "popitem", "union_update",
})  # fmt: skip


class TooLarge(Exception):  # noqa: N818 - a bound, not a fault
    """A value would have more elements than the limits allow."""


def apply(name: str, args: list[Any], keywords: Mapping[str, Any], limits: Limits) -> Any:
    """Apply a known function to known values; `NotImplemented` if it is none of ours.

    Raises:
        TooLarge: The result would pass the limits.
    """
    if name in STRUCTURAL:
        return _structural(name, args, keywords, limits)
    function = FUNCTIONS.get(name)
    if function is None:
        return NotImplemented
    if name == "len" and args and isinstance(args[0], list | dict | tuple | set | str | range):
        return _length(args[0])
    if name == "str" and len(args) == 1 and isinstance(args[0], Joined):
        return args[0]
    if name == "bool" or not all(deeply_known(arg) for arg in (*args, *keywords.values())):
        return Unknown("value", name)
    if name == "str" and len(args) == 1 and isinstance(args[0], Text):
        return args[0]
    if any(isinstance(arg, range) and len(arg) > limits.elements for arg in args):
        raise TooLarge
    try:
        return function(*args, **keywords)
    except Exception:  # noqa: BLE001 - whatever the source would raise here, it has no value
        return Unknown("error", name)


def _length(value: Any) -> Any:
    if isinstance(value, Keys) and value.rest is not None:
        return Unknown("value", "len")
    if isinstance(value, list | tuple) and any(isinstance(item, Rest) for item in value):
        return Unknown("value", "len")
    return len(value)


def sequence(value: Any) -> Sequence[Any] | None:
    """The elements of a value that can be iterated over and whose elements are all named, else None."""
    if isinstance(value, dict):
        return None if isinstance(value, Keys) and value.rest is not None else list(value)
    if isinstance(value, list | tuple):
        return None if any(isinstance(item, Rest) for item in value) else value
    if isinstance(value, str | range | bytes):
        return value
    if isinstance(value, set | frozenset):
        return sorted(value, key=repr)
    return None


def _structural(name: str, args: list[Any], keywords: Mapping[str, Any], limits: Limits) -> Any:  # noqa: PLR0911
    if name in {"typing.cast", "cast"}:
        return args[1] if len(args) == 2 else Unknown("call", name)
    if name == "next":
        found = sequence(args[0]) if args else None
        if found is None or (not found and len(args) < 2):
            return Unknown("value", name)
        return found[0] if found else args[1]
    if name in {"copy.copy", "copy.deepcopy"}:
        return duplicate(args[0]) if args else Unknown("call", name)
    if name == "range":
        if not all(isinstance(arg, int) for arg in args) or not args:
            return Unknown("value", name)
        try:
            return range(*args)
        except (ValueError, TypeError):
            return Unknown("error", name)
    if name in {"dict", "collections.OrderedDict", "types.MappingProxyType", "collections.defaultdict"}:
        return _dict(args[1:] if name.endswith("defaultdict") else args, keywords)
    return _rearrange(name, args, keywords, limits)


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


def _rearrange(name: str, args: list[Any], keywords: Mapping[str, Any], limits: Limits) -> Any:  # noqa: C901, PLR0912
    if name in {"list", "tuple", "set", "iter"} and not args:
        return {"list": Items(), "tuple": (), "set": set()}.get(name, Unknown("call", name))
    if name == "enumerate":
        args, start = args[:1], (args[1] if len(args) > 1 else keywords.get("start", 0))
    else:
        start = 0
    if name in {"list", "tuple"} and isinstance(args[0], list | tuple):
        return Items(args[0]) if name == "list" else tuple(args[0])
    if name == "itertools.chain.from_iterable":
        inner = sequence(args[0])
        if inner is None:
            return Unknown("value", name)
        args, name = list(inner), "itertools.chain"
    known: list[Sequence[Any]] = []
    counts = name in {"itertools.combinations", "itertools.permutations"}
    for arg in args[:1] if counts else args:
        elements = sequence(arg)
        if elements is None:
            return arg if isinstance(arg, Unknown) else Unknown("value", name)
        if len(elements) > limits.elements:
            raise TooLarge
        known.append(elements)
    size = 1
    for elements in known:
        size = size * max(len(elements), 1) if name == "itertools.product" else size + len(elements)
    repeat = keywords.get("repeat", 1)
    if not isinstance(repeat, int) or not isinstance(start, int):
        return Unknown("value", name)
    if name == "itertools.product" and size**repeat > limits.elements:
        raise TooLarge
    made: Any
    match name:
        case "list" | "iter":
            made = Items(known[0])
        case "tuple":
            made = tuple(known[0])
        case "set":
            made = set(known[0]) if all(hashable(item) for item in known[0]) else Unknown("value", name)
        case "zip":
            made = Items(zip(*known, strict=False))
        case "enumerate":
            made = Items(enumerate(known[0], start))
        case "itertools.product":
            made = Items(itertools.product(*known, repeat=repeat))
        case "itertools.chain":
            made = Items(itertools.chain(*known))
        case _:
            count = args[1] if len(args) > 1 else len(known[0])
            if not isinstance(count, int) or len(known[0]) > 12:
                raise TooLarge
            made = Items(getattr(itertools, name.rpartition(".")[2])(known[0], count))
    return made


def hashable(value: Any) -> bool:
    """Whether a value can be a key."""
    try:
        hash(value)
    except TypeError:
        return False
    return True


def duplicate(value: Any, memo: dict[int, Any] | None = None) -> Any:
    """A deep copy of lists, dicts and small objects, sharing what is shared; everything else is the same."""
    if not isinstance(value, dict | list | tuple | set | Instance):
        return value
    memo = {} if memo is None else memo
    if id(value) in memo:
        return memo[id(value)]
    made: Any = value
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
    memo[id(value)] = made
    return made


def weight(value: Any, limit: int) -> int:
    """How many values a value holds, counted up to a limit."""
    if limit <= 0:
        return 0
    inner: Any = ()
    if isinstance(value, dict):
        inner = value.values()
    elif isinstance(value, list | tuple):
        inner = value
    elif isinstance(value, Instance):
        inner = value.attributes.values()
    count = 1
    for item in inner:
        count += weight(item, limit - count)
        if count >= limit:
            break
    return count


def method(receiver: Any, name: str, args: list[Any], keywords: Mapping[str, Any], limits: Limits) -> Any:
    """Call a method of a plain value.

    Raises:
        TooLarge: The result would pass the limits.
    """
    if isinstance(receiver, str):
        return _string(receiver, name, args, keywords, limits)
    if isinstance(receiver, dict):
        return _dict_method(receiver, name, args, keywords)
    if isinstance(receiver, list):
        return _list_method(receiver, name, args, limits)
    if isinstance(receiver, set):
        return _set_method(receiver, name, args)
    if isinstance(receiver, tuple) and name == "index" and deeply_known(receiver) and all(map(deeply_known, args)):
        try:
            return receiver.index(*args)
        except (ValueError, TypeError):
            return Unknown("error", name)
    return Unknown("call", name)


def _string(receiver: str, name: str, args: list[Any], keywords: Mapping[str, Any], limits: Limits) -> Any:
    if name not in STRING_METHODS:
        return Unknown("call", name)
    if not all(deeply_known(arg) for arg in (*args, *keywords.values())):
        return Unknown("value", name)
    if name == "format" and any(isinstance(a, int) and abs(a) > 10**9 for a in args):
        return Unknown("value", name)
    weight = len(receiver) * (1 + sum(len(arg) for arg in args if isinstance(arg, str | list | tuple)))
    if name in {"join", "replace", "format", "zfill"} and (
        weight > limits.elements * 100 or _wide(receiver, name, args)
    ):
        raise TooLarge
    try:
        result = getattr(str(receiver), name)(*args, **keywords)
    except Exception:  # noqa: BLE001 - whatever the source would raise here, it has no value
        return Unknown("error", name)
    return Items(result) if isinstance(result, list) else result


def _wide(receiver: str, name: str, args: list[Any]) -> bool:
    if name == "zfill":
        return not (args and isinstance(args[0], int) and args[0] < 1000)
    if name == "format":
        return ":" in receiver and any(
            part[:6].strip("<>^=+-0,").isdigit() for part in receiver.split(":")[1:] if len(part) > 4
        )
    return False


def _dict_method(receiver: dict[Any, Any], name: str, args: list[Any], keywords: Mapping[str, Any]) -> Any:  # noqa: PLR0911
    rest = receiver.rest if isinstance(receiver, Keys) else None
    key = args[0] if args else None
    if name in {"get", "pop", "setdefault"}:
        if not args or not hashable(key) or isinstance(key, Unknown):
            return Unknown("value", name)
        if key in receiver:
            return receiver.pop(key) if name == "pop" else receiver[key]
        default = args[1] if len(args) > 1 else keywords.get("default")
        if rest is not None:
            return Unknown(rest.reason, rest.detail)
        if name == "setdefault":
            receiver[key] = default
        return default
    match name:
        case "items":
            made = Items((k, v) for k, v in receiver.items())
            return Items([*made, Rest(rest)]) if rest else made
        case "keys" | "values":
            made = Items(receiver) if name == "keys" else Items(receiver.values())
            return Items([*made, Rest(rest)]) if rest else made
        case "copy":
            return Keys(receiver)
        case "update" | "__ior__":
            merge(receiver, key)
            receiver.update(keywords)
            if isinstance(receiver, Keys):
                receiver.inherit(keywords)
            return None
        case "clear":
            receiver.clear()
            return None
        case _:
            return Unknown("call", name)


def merge(receiver: dict[Any, Any], other: Any) -> None:
    """`receiver.update(other)`, whatever `other` is."""
    if isinstance(other, dict):
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


def _list_method(receiver: list[Any], name: str, args: list[Any], limits: Limits) -> Any:
    if len(receiver) > limits.elements:
        raise TooLarge
    match name:
        case "append":
            receiver.append(args[0] if args else Unknown("value", name))
        case "extend" | "__iadd__":
            extend(receiver, args[0] if args else Unknown("value", name))
        case "insert" if len(args) == 2 and isinstance(args[0], int):
            receiver.insert(args[0], args[1])
        case "copy":
            return Items(receiver)
        case "clear":
            receiver.clear()
        case "reverse":
            receiver.reverse()
        case "index" | "count" | "remove" | "pop" | "sort" if deeply_known(receiver) and all(map(deeply_known, args)):
            try:
                return getattr(receiver, name)(*args)
            except (ValueError, TypeError, IndexError):
                return Unknown("error", name)
        case _:
            if name in CHANGING:
                receiver[:] = [Rest(Unknown("value", name))]
            return Unknown("call", name)
    return None


def extend(receiver: list[Any], other: Any) -> None:
    """`receiver.extend(other)`, whatever `other` is."""
    elements = other if isinstance(other, list | tuple) else sequence(other)
    if elements is None:
        receiver.append(Rest(other if isinstance(other, Unknown) else Unknown("value", "extend")))
    else:
        receiver.extend(elements)


def _set_method(receiver: set[Any], name: str, args: list[Any]) -> Any:
    if name == "add" and args and hashable(args[0]):
        receiver.add(args[0])
        return None
    if name in {"union", "intersection", "difference"} and all(isinstance(arg, set | list | tuple) for arg in args):
        try:
            return getattr(receiver, name)(*args)
        except TypeError:
            return Unknown("error", name)
    return Unknown("call", name)
