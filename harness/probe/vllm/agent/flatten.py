"""A resolved configuration as plain values: `section.field` -> something that JSON can say."""

import dataclasses
import enum
import math
from typing import Any

_LONGEST = 64


def flatten(config: Any) -> dict[str, Any]:
    """List the fields of every section of an engine's configuration.

    Args:
        config: A `VllmConfig`.

    Returns:
        `cache.block_size` and the like, without what has no plain value; sections lose their `_config`.
    """
    found: dict[str, Any] = {}
    for field in dataclasses.fields(config):
        value = getattr(config, field.name, None)
        section = field.name.removesuffix("_config")
        if dataclasses.is_dataclass(value):
            _section(section, value, found, 1)
        elif (said := plain(value)) is not ABSENT:
            found[section] = said
    return found


class _Absent:
    """A value that has no plain form."""


ABSENT = _Absent()


def _section(prefix: str, value: Any, found: dict[str, Any], deeper: int) -> None:
    for field in dataclasses.fields(value):
        inner = value.__dict__.get(field.name) if hasattr(value, "__dict__") else getattr(value, field.name, None)
        name = f"{prefix}.{field.name}"
        if dataclasses.is_dataclass(inner):
            if deeper:
                _section(name, inner, found, deeper - 1)
        elif (said := plain(inner)) is not ABSENT:
            found[name] = said


def plain(value: Any) -> Any:
    """A value as JSON can say it, or ABSENT."""
    if isinstance(value, enum.Enum):
        return value.name
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if type(value).__module__ == "torch" and type(value).__name__ == "dtype":
        return str(value).removeprefix("torch.")
    if isinstance(value, (list, tuple, set, frozenset)):
        return _items(sorted(value, key=str) if isinstance(value, (set, frozenset)) else value)
    if isinstance(value, dict):
        if len(value) > _LONGEST:
            return ABSENT
        said = {str(key): plain(inner) for key, inner in value.items()}
        return ABSENT if any(inner is ABSENT for inner in said.values()) else said
    return ABSENT


def _items(values: Any) -> Any:
    if len(values) > _LONGEST:
        return ABSENT
    said = [plain(inner) for inner in values]
    return ABSENT if any(inner is ABSENT for inner in said) else said
