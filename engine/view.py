"""A configuration as one holder sees it, flat and plain, so that two of them can be laid side by side. No torch."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Literal

import msgspec

from staticfire.engine.config.model import ModelInfo

Plain = str | int | float | bool | None


Role = Literal["front end", "engine core", "worker", "metrics"]


class View(msgspec.Struct, frozen=True, kw_only=True):
    """What one holder has.

    Attributes:
        role: What kind of holder it is.
        engine: Which engine it belongs to, or speaks of; None for the front end's own configuration.
        rank: Which rank of the engine a worker is.
        fields: `section.field` -> value, from `flatten`. A model is one entry, the digest of its `config.json`.
    """

    role: Role
    engine: int | None = None
    rank: int | None = None
    fields: dict[str, Plain]

    @property
    def holder(self) -> str:
        """The holder's name: `front end`, `engine core 0`, `worker 0.1` (engine 0, rank 1)."""
        match self.role, self.engine:
            case "front end", None:
                return "front end"
            case "front end", int(engine):
                return f"front end on engine {engine}"
            case "metrics", int(engine):
                return f"metrics of engine {engine}"
            case _:
                return f"{self.role} {self.engine}" + ("" if self.rank is None else f".{self.rank}")


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


def front_end_views(config: Any, engine_configs: Mapping[int, Any]) -> list[View]:
    """What a front end has: its own configuration, and what it knows of each engine's."""
    own = View(role="front end", fields=flatten(config))
    return [
        own,
        *(View(role="front end", engine=engine, fields=flatten(known)) for engine, known in engine_configs.items()),
    ]
