"""Methods of plain values, applied within bounds."""

import re
from collections.abc import Mapping
from typing import Any

from staticfire.harness.scan.base import Limits, Unknown
from staticfire.harness.scan.budget import current
from staticfire.harness.scan.containers import TooLarge, charge, extend, hashable, merge
from staticfire.harness.scan.values import Items, Keys, Rest, deeply_known

STRING_METHODS = frozenset({
    "format", "join", "split", "rsplit", "splitlines", "strip", "lstrip", "rstrip", "lower", "upper", "title",
    "replace", "startswith", "endswith", "removeprefix", "removesuffix", "partition", "rpartition", "capitalize",
    "count", "find", "index", "isdigit", "encode", "zfill", "casefold", "isupper", "islower", "rfind",
})  # fmt: skip

_SPEC = re.compile(r":([^{}]*)")
_NESTED = re.compile(r":[^{}]*\{")

CHANGING = frozenset({
    "append", "extend", "insert", "update", "setdefault", "pop", "remove", "clear", "add", "discard", "sort",
    "reverse", "popitem", "union_update",
})  # fmt: skip


def method(receiver: Any, name: str, args: list[Any], keywords: Mapping[str, Any], limits: Limits) -> Any:
    """Call a method of a plain value.

    Raises:
        TooLarge: The result would pass the limits.
    """
    if isinstance(receiver, str):
        return _string(receiver, name, args, keywords)
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


def _string(receiver: str, name: str, args: list[Any], keywords: Mapping[str, Any]) -> Any:
    if name not in STRING_METHODS:
        return Unknown("call", name)
    if not all(deeply_known(arg) for arg in (*args, *keywords.values())):
        return Unknown("value", name)
    current().make(_length(receiver, name, args, keywords))
    try:
        result = getattr(str(receiver), name)(*args, **keywords)
    except Exception:  # noqa: BLE001 - whatever the source would raise here, it has no value
        return Unknown("error", name)
    return Items(result) if isinstance(result, list) else result


def _length(receiver: str, name: str, args: list[Any], keywords: Mapping[str, Any]) -> int:
    """No less than the length of what a method makes."""
    texts = [
        item for arg in args for item in (arg if isinstance(arg, list | tuple) else (arg,)) if isinstance(item, str)
    ]
    widths = [abs(arg) for arg in args if isinstance(arg, int)]
    total = sum(map(len, texts))
    if name == "join":
        return total + len(receiver) * len(args[0]) if args and isinstance(args[0], list | tuple) else total
    if name == "replace":
        return len(receiver) + (len(receiver) + 1) * (len(args[1]) if len(args) > 1 and isinstance(args[1], str) else 0)
    if name == "zfill":
        return max([len(receiver), *widths])
    if name == "format":
        return _formatted(receiver, [*args, *keywords.values()])
    return len(receiver) + total


def _formatted(receiver: str, values: list[Any]) -> int:
    """No less than the length of what `format` makes: a field can be as wide as a number in it, and hold any value."""
    wide = [int(number) for spec in _SPEC.findall(receiver) for number in re.findall(r"\d{1,12}", spec)]
    if _NESTED.search(receiver):
        wide += [abs(value) for value in values if isinstance(value, int)]
    largest = max((len(value) if isinstance(value, str) else 40 for value in values), default=0)
    plural = max((len(value) for value in values if isinstance(value, list | tuple | dict | set)), default=0) * 40
    return len(receiver) + receiver.count("{") * (largest + plural + max(wide, default=0))


def _dict_method(receiver: dict[Any, Any], name: str, args: list[Any], keywords: Mapping[str, Any]) -> Any:
    rest = receiver.rest if isinstance(receiver, Keys) else None
    if name in {"get", "pop", "setdefault"}:
        return _looked_up(receiver, name, args, keywords, rest)
    result: Any = None
    match name:
        case "items" | "keys" | "values":
            charge(len(receiver))
            made = Items(getattr(receiver, name)())
            result = Items([*made, Rest(rest)]) if rest else made
        case "copy":
            charge(len(receiver))
            result = Keys(receiver)
        case "update" | "__ior__":
            merge(receiver, args[0] if args else None)
            receiver.update(keywords)
            if isinstance(receiver, Keys):
                receiver.inherit(keywords)
        case "clear":
            receiver.clear()
        case _:
            result = Unknown("call", name)
    return result


def _looked_up(
    receiver: dict[Any, Any], name: str, args: list[Any], keywords: Mapping[str, Any], rest: Unknown | None
) -> Any:
    key = args[0] if args else None
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
            charge(len(receiver))
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
