"""Configuration that explains itself: Typed -> Resolved -> settled by the worker. Imports no torch.

The names below are imported when first used, so that `engine.config.device` alone costs no pydantic.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from staticfire.engine.config.acceptance import accept
    from staticfire.engine.config.device import CPU, Device
    from staticfire.engine.config.engine_config import EngineConfig, ResolvedConfig
    from staticfire.engine.config.errors import ConfigError, Fault
    from staticfire.engine.config.model import ModelInfo
    from staticfire.engine.config.reader import model_info
    from staticfire.engine.config.release import NEWEST, REFERENCE, EngineRelease
    from staticfire.engine.config.repair import repairs
    from staticfire.engine.config.resolution import Resolution
    from staticfire.engine.config.resolver import resolve

__all__ = [
    "CPU",
    "NEWEST",
    "REFERENCE",
    "ConfigError",
    "Device",
    "EngineConfig",
    "EngineRelease",
    "Fault",
    "ModelInfo",
    "Resolution",
    "ResolvedConfig",
    "accept",
    "model_info",
    "repairs",
    "resolve",
]

_HOME = {
    "CPU": "device",
    "NEWEST": "release",
    "REFERENCE": "release",
    "ConfigError": "errors",
    "Device": "device",
    "EngineConfig": "engine_config",
    "EngineRelease": "release",
    "Fault": "errors",
    "ModelInfo": "model",
    "Resolution": "resolution",
    "ResolvedConfig": "engine_config",
    "accept": "acceptance",
    "model_info": "reader",
    "repairs": "repair",
    "resolve": "resolver",
}


def __getattr__(name: str) -> Any:
    """Import the defining module of `name` on first use."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value
