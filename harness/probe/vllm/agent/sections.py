"""Build a `VllmConfig(...)` from its sections, as code does that constructs one by hand."""

import dataclasses
import importlib
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
    if Path(model, "config.json").is_file():
        own = sections.setdefault("model_config", {})
        own.update(model=model, tokenizer=model, skip_tokenizer_init=True)
    else:
        sections.pop("model_config", None)
    made = {section: _class(config, section)(**fields) for section, fields in sections.items()}
    return config.VllmConfig(**plain, **made)


def _class(config: Any, section: str) -> Any:
    """The class of a section: the one of the engine's dataclasses whose name reads the same."""
    wanted = section.replace("_", "").lower()
    for name, value in vars(config).items():
        if name.lower() == wanted and dataclasses.is_dataclass(value):
            return value
    raise LookupError(f"the engine has no section {section}")
