"""Names of models and what they stand for: a Hugging Face `config.json` as a mapping. Imports no torch.

A name is looked up in this order: our own files in `matrices/models/`, a folder or file on disk, and the local
Hugging Face cache (only where `huggingface_hub` is importable; nothing is ever downloaded).
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from staticfire.engine.config.quantized import with_file_beside
from staticfire.harness.errors import InputError, nearest

_ENVELOPE = {"name", "description", "source", "tiny", "config"}
_TINY = {"seed", "gain"}


@dataclass(frozen=True, slots=True)
class Tiny:
    """How the weights of a tiny model are drawn.

    Attributes:
        seed: Seed of every random draw.
        gain: Matrices have the standard deviation `gain / sqrt(fan_in)`.
    """

    seed: int
    gain: float


@dataclass(frozen=True, slots=True)
class ModelFile:
    """One file of `matrices/models/`.

    Attributes:
        name: Its name on the command line; the file's stem.
        description: One line.
        source: Where the facts come from.
        tiny: How its checkpoint is made; None for a model that is only resolved, never run.
        config: The Hugging Face configuration.
    """

    name: str
    description: str
    source: str
    tiny: Tiny | None
    config: Mapping[str, Any]


class Found(NamedTuple):
    """A model that was found: the Hugging Face mapping, a name to show, and where it came from."""

    hf: Mapping[str, Any]
    name: str
    where: str


def names() -> tuple[str, ...]:
    """Every name in `matrices/models/`, sorted."""
    folder = files("staticfire.matrices").joinpath("models")
    return tuple(sorted(entry.name[:-5] for entry in folder.iterdir() if entry.name.endswith(".json")))


@cache
def load(name: str) -> ModelFile:
    """Read one of our own model files.

    Args:
        name: A name from `names()`.

    Raises:
        InputError: Unknown name, or a file that is not of our form.
    """
    if name not in names():
        raise InputError(f"No model named {name!r}.{nearest(name, names())} Models: {', '.join(names())}.")
    resource = files("staticfire.matrices").joinpath("models", f"{name}.json")
    return parse_model_file(resource.read_text(encoding="utf-8"), f"matrices/models/{name}.json", name)


def find(name_or_path: str | Path) -> Found:
    """Find a model by path, by a name of ours, or by a Hugging Face id in the local cache.

    Args:
        name_or_path: A folder with a `config.json`, such a file, a name from `names()`, or `owner/name`.

    Returns:
        The Hugging Face mapping, the name to show, and where it was found.

    Raises:
        InputError: Nothing by that name, or a `config.json` that cannot be read.
    """
    text = str(name_or_path)
    if not text:
        raise InputError(f"The name of a model is empty. Models: {', '.join(names())}.")
    path = Path(name_or_path)
    if text in names() and not isinstance(name_or_path, Path):
        model = load(text)
        return Found(model.config, model.name, f"matrices/models/{text}.json")
    if path.is_dir():
        return _from_folder(path, text)
    if path.is_file():
        name = path.resolve().parent.name if path.name == "config.json" else path.stem
        return Found(_read_config(path), name, str(path))
    cached = _hf_cache(text)
    if cached is not None:
        return Found(_read_config(cached), text, str(cached))
    raise InputError(
        f"No model {text!r}: not a folder with a config.json, not a name of ours, and not in the local Hugging Face "
        f"cache.{nearest(text, names())} Models: {', '.join(names())}."
    )


def parse_model_file(text: str, where: str, name: str) -> ModelFile:
    """Check one model file and report all its faults at once.

    Args:
        text: The JSON text.
        where: The file's name, for messages.
        name: The name that the file must bear.

    Raises:
        InputError: Broken JSON, unknown or missing keys, wrong types.
    """
    document = _parse_object(text, where)
    faults = [f"unknown key {key!r}.{nearest(key, _ENVELOPE)}" for key in sorted(set(document) - _ENVELOPE)]
    faults += [
        f"{key} must be a non-empty string, got {document.get(key)!r}"
        for key in ("name", "description", "source")
        if not isinstance(document.get(key), str) or not document[key]
    ]
    if isinstance(document.get("name"), str) and document["name"] != name:
        faults.append(f"name is {document['name']!r}, but the file is called {name!r}")
    config = document.get("config")
    if not isinstance(config, dict) or not isinstance(config.get("model_type"), str):
        faults.append("config must be an object with a model_type, as in a Hugging Face config.json")
    tiny = _parse_tiny(document.get("tiny"), faults)
    if faults:
        raise InputError(f"{where}: " + "; ".join(faults))
    return ModelFile(name, document["description"], document["source"], tiny, document["config"])


def _parse_tiny(value: Any, faults: list[str]) -> Tiny | None:
    if value is None:
        return None
    if not isinstance(value, dict):
        faults.append(f"tiny must be an object with seed and gain, got {value!r}")
        return None
    faults += [f"unknown key tiny.{key!r}.{nearest(key, _TINY)}" for key in sorted(set(value) - _TINY)]
    seed, gain = value.get("seed"), value.get("gain")
    if not isinstance(seed, int) or isinstance(seed, bool) or seed < 0:
        faults.append(f"tiny.seed must be a whole number from 0 on, got {seed!r}")
    if not isinstance(gain, int | float) or isinstance(gain, bool) or gain <= 0:
        faults.append(f"tiny.gain must be a number above 0, got {gain!r}")
    return None if faults else Tiny(int(value["seed"]), float(value["gain"]))


def _from_folder(path: Path, text: str) -> Found:
    config = path / "config.json"
    if not config.is_file():
        hint = f" (a model of ours has that name: ask for {path.name!r} without a path)" if path.name in names() else ""
        raise InputError(f"{text}: the folder holds no config.json{hint}.")
    return Found(_read_config(config), path.resolve().name, str(config))


def _read_config(path: Path) -> Mapping[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text at byte {error.start}.") from error
    config = _parse_object(text, str(path))
    if set(config) >= {"config", "description"} and "model_type" not in config:
        return parse_model_file(text, str(path), path.stem).config
    if not isinstance(config.get("model_type"), str):
        raise InputError(
            f"{path}: model_type must be a string such as 'jamba', got {config.get('model_type')!r}; "
            "is this the config.json of a model?"
        )
    if path.name != "config.json":
        return config
    try:
        return with_file_beside(config, path.parent)
    except ValueError as error:
        raise InputError(f"{error}.") from error


def _parse_object(text: str, where: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(f"{where}:{error.lineno}:{error.colno}: not JSON: {error.msg}.") from error
    except RecursionError as error:
        raise InputError(f"{where}: nested too deeply to be read.") from error
    except ValueError as error:  # a whole number of thousands of digits
        raise InputError(f"{where}: not a number that can be read: {error}.") from error
    if not isinstance(value, dict):
        raise InputError(f"{where}: expected a JSON object, got {type(value).__name__}.")
    return value


def _hf_cache(name: str) -> Path | None:
    """Look for `owner/name` in the local Hugging Face cache; never touches the network."""
    if name.count("/") != 1 or name.startswith((".", "/")):
        return None
    try:
        from huggingface_hub import try_to_load_from_cache  # noqa: PLC0415 -- an extra; costs 0.1 s to import
        from huggingface_hub.errors import HFValidationError  # noqa: PLC0415 -- the same
    except ImportError:
        return None
    try:
        path = try_to_load_from_cache(name, "config.json")
    except HFValidationError:
        return None
    return Path(path) if isinstance(path, str) else None
