"""Which file of a checkpoint folder holds which tensor. Imports no torch."""

import json
import os
from pathlib import Path, PurePath
from typing import Any

from staticfire.engine.config.quantized import with_file_beside
from staticfire.engine.errors import CheckpointError
from staticfire.engine.loader.header import TensorEntry, read_header

SINGLE = "model.safetensors"
INDEX = "model.safetensors.index.json"


def read_hf_config(folder: Path) -> dict[str, Any]:
    """Read `config.json` of a checkpoint folder, with the quantization that a file beside it declares.

    Raises:
        CheckpointError: The folder or file is missing, or is not a JSON object.
    """
    path = folder / "config.json"
    if not folder.is_dir():
        raise CheckpointError(f"{folder}: no such folder; a model is a folder with config.json and safetensors files")
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CheckpointError(f"{path}: no such file; every checkpoint has one") from None
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path}: not JSON: {error}") from error
    if not isinstance(value, dict):
        raise CheckpointError(f"{path}: must be a JSON object, is a {type(value).__name__}")
    try:
        return dict(with_file_beside(value, folder))
    except ValueError as error:
        raise CheckpointError(str(error)) from error


def read_index(folder: Path, faults: list[str]) -> dict[str, TensorEntry]:
    """Find every tensor of the checkpoint in `folder`; faults are appended, none is raised."""
    if (folder / INDEX).exists():
        return _sharded(folder, faults)
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        pickles = sorted(path.name for path in folder.glob("*.bin"))
        hint = f" ({', '.join(pickles)} would need unpickling, which is never done)" if pickles else ""
        faults.append(f"{SINGLE}: no such file, and no {INDEX}{hint}")
        return {}
    entries: dict[str, TensorEntry] = {}
    for path in files:
        for name, entry in read_header(path, faults).items():
            if name in entries:
                faults.append(f"{path.name}: tensor {name!r} is also in {entries[name].file.name}")
            entries[name] = entry
    return entries


def _shard_fault(folder: Path, shard: str) -> str | None:
    """Why a shard cannot be read. Whoever wrote the index may not choose files elsewhere on this machine."""
    path = PurePath(shard)
    if path.is_absolute() or ".." in path.parts:
        return "outside the checkpoint's folder"
    return None if os.path.isfile(folder / shard) else "missing shard"  # noqa: PTH113 - False for impossible names too


def _sharded(folder: Path, faults: list[str]) -> dict[str, TensorEntry]:
    try:
        weight_map = json.loads((folder / INDEX).read_text(encoding="utf-8"))["weight_map"]
        placed = {str(name): str(shard) for name, shard in weight_map.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        faults.append(f"{INDEX}: not an index with a weight_map: {type(error).__name__}: {error}")
        return {}
    entries: dict[str, TensorEntry] = {}
    for shard in sorted(set(placed.values())):
        names = [name for name, home in placed.items() if home == shard]
        fault = _shard_fault(folder, shard)
        if fault:
            faults.append(f"{shard}: {fault}; {INDEX} places {len(names)} tensors there, such as {names[0]!r}")
            # The entries still count as placed: a missing shard is one fault, not one for each of its tensors.
            entries.update({name: TensorEntry(folder / shard, "?", ()) for name in names})
            continue
        before = len(faults)
        found = read_header(folder / shard, faults)
        unreadable = len(faults) > before
        for name in names:
            if name in found:
                entries[name] = found[name]
                continue
            if not unreadable:
                faults.append(f"{shard}: tensor {name!r} is not in it, though {INDEX} places it there")
            entries[name] = TensorEntry(folder / shard, "?", ())
        faults.extend(f"{shard}: tensor {name!r} is not in {INDEX}" for name in found if placed.get(name) != shard)
    return entries
