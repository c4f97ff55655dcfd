"""A configuration as one holder sees it, flat and plain, so that two of them can be laid side by side. No torch."""

import hashlib
import json
from dataclasses import fields, is_dataclass
from typing import Any

import msgspec

from staticfire.engine.config.model import ModelInfo

Plain = str | int | float | bool | None


class View(msgspec.Struct, frozen=True):
    """What one holder has.

    Attributes:
        holder: `front end`, `engine core 0`, `worker 0.1` (engine 0, rank 1) or `metrics of engine 0`.
        fields: `section.field` -> value. A model is one entry, the digest of its `config.json`.
    """

    holder: str
    fields: dict[str, Plain]


def front_end() -> str:
    """Name of the holder that users talk to."""
    return "front end"


def engine_core(engine: int) -> str:
    """Name of one engine's scheduler process."""
    return f"engine core {engine}"


def worker(engine: int, rank: int) -> str:
    """Name of one rank of one engine."""
    return f"worker {engine}.{rank}"


def flatten(config: Any) -> dict[str, Plain]:
    """Lay a configuration out flat.

    Args:
        config: A dataclass of sections, each a dataclass of plain values.

    Returns:
        `section.field` -> value, in the order of declaration.
    """
    flat: dict[str, Plain] = {}
    for section in fields(config):
        _flatten(section.name, getattr(config, section.name), flat)
    return flat


def _flatten(name: str, value: Any, flat: dict[str, Plain]) -> None:
    if isinstance(value, ModelInfo):
        flat[name] = _digest(value)
    elif is_dataclass(value):
        for field in fields(value):
            _flatten(f"{name}.{field.name}", getattr(value, field.name), flat)
    elif value is None or isinstance(value, str | int | float):
        flat[name] = value
    else:
        flat[name] = json.dumps(value, sort_keys=True, default=list)


def _digest(info: ModelInfo) -> str:
    text = json.dumps(info.hf, sort_keys=True, default=str)
    return f"{info.architecture} {hashlib.sha256(text.encode()).hexdigest()[:16]}"
