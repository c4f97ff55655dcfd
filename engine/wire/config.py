"""Configurations to bytes and back. Imports no torch.

The wire form follows the dataclasses field by field, so that a new field travels without a line here; unknown ones are
refused, for what one side drops silently the other side relies on. The model goes as its `config.json`, from which the
receiver reads the rest anew.
"""

import json
from typing import Any, Final, get_type_hints

import msgspec

from staticfire.engine.config.engine_config import EngineConfig, ModelConfig, ResolvedConfig
from staticfire.engine.config.errors import ConfigError
from staticfire.engine.config.reader import model_info
from staticfire.engine.errors import WireError

MODEL_FIELDS: Final = {name: kind for name, kind in get_type_hints(ModelConfig).items() if name != "info"}
SECTIONS: Final = {name: kind for name, kind in get_type_hints(ResolvedConfig).items() if name != "model"}
RUNTIME: Final = get_type_hints(EngineConfig)["runtime"]
MAX_BYTES: Final = 16 * 2**20
"""No `config.json` comes near it."""

_Model: Final = msgspec.defstruct(
    "_Model", [*MODEL_FIELDS.items(), ("name", str), ("hf", str)], forbid_unknown_fields=True
)
_Config: Final = msgspec.defstruct(
    "_Config",
    [("model", _Model), *SECTIONS.items(), ("runtime", RUNTIME | None, None)],
    forbid_unknown_fields=True,
)
_decoder: Final = msgspec.json.Decoder(_Config)


def encode_config(config: ResolvedConfig) -> bytes:
    """Give the bytes of a configuration.

    Args:
        config: A resolved one, or a settled one with its run-time values.

    Raises:
        WireError: It holds what has no bytes, such as a file name that is no text.
    """
    info = config.model.info
    try:
        # The standard library's JSON, for a config.json may hold Infinity (limits of a time step), which is no JSON.
        model = _Model(**_values(config.model, MODEL_FIELDS), name=info.name, hf=json.dumps(info.hf))
        runtime = config.runtime if isinstance(config, EngineConfig) else None
        return msgspec.json.encode(_Config(model=model, **_values(config, SECTIONS), runtime=runtime))
    except (msgspec.MsgspecError, ValueError, TypeError, RecursionError) as error:
        raise WireError(f"the configuration of {info.name!r} cannot be sent: {error}") from error


def decode_config(data: bytes) -> ResolvedConfig:
    """Read a configuration; one with run-time values is an `EngineConfig`.

    Raises:
        WireError: It is damaged, too large, or of another version.
    """
    if len(data) > MAX_BYTES:
        raise WireError(f"a configuration of {len(data)} bytes is refused: the limit is {MAX_BYTES}")
    try:
        wire: Any = _decoder.decode(data)
        info = model_info(json.loads(wire.model.hf), wire.model.name)
    except (msgspec.MsgspecError, ValueError, RecursionError, ConfigError) as error:
        raise WireError(f"a configuration of {len(data)} bytes cannot be read: {error}") from error
    sections = {
        "model": ModelConfig(**_values(wire.model, MODEL_FIELDS), info=info),
        **_values(wire, SECTIONS),
    }
    config = EngineConfig(**sections, runtime=wire.runtime) if wire.runtime else ResolvedConfig(**sections)
    if encode_config(config) != data:
        raise WireError(f"a configuration of {len(data)} bytes cannot be read: it holds more than this version knows")
    return config


def decode_engine_config(data: bytes) -> EngineConfig:
    """Read a configuration that a worker has settled.

    Raises:
        WireError: As `decode_config`, or nobody has settled it.
    """
    config = decode_config(data)
    if not isinstance(config, EngineConfig):
        raise WireError("a configuration without run-time values came from where workers settle them")
    return config


def _values(holder: object, names: Any) -> dict[str, Any]:
    return {name: getattr(holder, name) for name in names}
