"""Anything a job returns, as values that every JSON reader understands."""

import dataclasses
import math
import os
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

MAX_DEPTH = 12
MAX_ITEMS = 2_000
MAX_TEXT = 20_000


def plain(value: Any, depth: int = 0) -> Any:  # noqa: PLR0911 - one return a kind of value
    """Return `value` as JSON data: finite numbers, text without lone surrogates, lists, string-keyed objects.

    Non-finite numbers become the text `nan`, `inf` or `-inf`, since JSON has none and evidence must not vanish.
    Tensors and arrays give their `tolist()`; what is unknown gives its `repr`. Size is bounded, and says so.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, int):
        return int(value) if abs(value) < 2**63 else str(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(float(value))
    if depth >= MAX_DEPTH:
        return _text(repr(value))
    if isinstance(value, os.PathLike):
        return _text(os.fspath(value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _mapping({field.name: getattr(value, field.name) for field in dataclasses.fields(value)}, depth)
    if isinstance(value, msgspec.Struct):
        return _mapping({name: getattr(value, name) for name in value.__struct_fields__}, depth)
    if isinstance(value, Mapping):
        return _mapping(value, depth)
    if hasattr(value, "tolist"):
        return plain(value.tolist(), depth + 1)
    if isinstance(value, (list, tuple, set, frozenset)):
        return _sequence(value, depth)
    return _text(repr(value))


def _text(value: str) -> str:
    clean = value.encode("utf-8", "replace").decode("utf-8")
    if len(clean) <= MAX_TEXT:
        return clean
    return f"{clean[:MAX_TEXT]}... ({len(clean) - MAX_TEXT} more characters)"


def _mapping(value: Mapping[Any, Any], depth: int) -> dict[str, Any]:
    items = list(value.items())
    result = {_text(str(key)): plain(item, depth + 1) for key, item in items[:MAX_ITEMS]}
    if len(items) > MAX_ITEMS:
        result["..."] = f"{len(items) - MAX_ITEMS} more entries"
    return result


def _sequence(value: Iterable[Any], depth: int) -> list[Any]:
    items = sorted(value, key=repr) if isinstance(value, (set, frozenset)) else list(value)
    result = [plain(item, depth + 1) for item in items[:MAX_ITEMS]]
    if len(items) > MAX_ITEMS:
        result.append(f"... {len(items) - MAX_ITEMS} more items")
    return result
