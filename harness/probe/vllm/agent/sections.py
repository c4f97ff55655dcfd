"""Build a `VllmConfig(...)` from its sections, as code does that constructs one by hand."""

import dataclasses
import enum
import importlib
import typing
from pathlib import Path
from typing import Any


def build(model: str, arguments: dict[str, Any]) -> Any:
    """Construct the configuration.

    Args:
        model: Folder with a config.json; a folder without one stands for no model at all.
        arguments: `section.field` -> value, and names of `VllmConfig` itself.

    Returns:
        A `VllmConfig`.

    Raises:
        Exception: Whatever the engine's own constructors raise.
    """
    config = importlib.import_module("vllm.config")
    sections: dict[str, dict[str, Any]] = {}
    plain: dict[str, Any] = {}
    for name, value in arguments.items():
        section, dot, field = name.partition(".")
        if dot:
            sections.setdefault(section, {})[field] = value
        else:
            plain[name] = value
    if (Path(model) / "config.json").is_file():
        own = sections.setdefault("model_config", {})
        own.update(model=model, tokenizer=model, skip_tokenizer_init=True)
    else:
        sections.pop("model_config", None)
    made = {section: _made(_class(config, section), fields) for section, fields in sections.items()}
    return _made(config.VllmConfig, {**plain, **made})


def _made(kind: Any, values: dict[str, Any]) -> Any:
    """Construct, with names of enumeration members as members; what is only assigned later is left out."""
    later = {field.name for field in dataclasses.fields(kind) if not field.init}
    hints = _hints(kind)
    given = {name: _read(hints.get(name), value) for name, value in values.items() if name not in later}
    # Some sections have values without a default, and a maker that fills them in; `VllmConfig` itself calls it.
    return getattr(kind, "default_factory", kind)(**given)


def _read(hint: Any, value: Any) -> Any:
    kinds = [hint, *typing.get_args(hint)]
    if isinstance(value, str):
        for kind in kinds:
            if isinstance(kind, type) and issubclass(kind, enum.Enum) and value in kind.__members__:
                return kind[value]
    if isinstance(value, dict):
        for kind in kinds:
            if isinstance(kind, type) and dataclasses.is_dataclass(kind):
                hints = _hints(kind)
                return {name: _read(hints.get(name), inner) for name, inner in value.items()}
    return value


def _hints(kind: Any) -> dict[str, Any]:
    try:
        return typing.get_type_hints(kind)
    except Exception:  # noqa: BLE001 -- hints that cannot be read tell nothing
        return {}


def _class(config: Any, section: str) -> Any:
    """The class of a section: the one of the engine's dataclasses whose name reads the same."""
    wanted = section.replace("_", "").lower()
    for name, value in vars(config).items():
        if name.lower() == wanted and dataclasses.is_dataclass(value):
            return value
    raise LookupError(f"the engine has no section {section}")
