"""The header of a safetensors file, read and checked without touching tensor data. Imports no torch.

Format: 8 bytes little-endian header length, a JSON header `name -> {dtype, shape, data_offsets}`, then the data
without holes (https://github.com/huggingface/safetensors#format).
"""

import json
import math
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DTYPE_BYTES = {
    "F64": 8,
    "F32": 4,
    "F16": 2,
    "BF16": 2,
    "F8_E4M3": 1,
    "F8_E5M2": 1,
    "I64": 8,
    "I32": 4,
    "I16": 2,
    "I8": 1,
    "U64": 8,
    "U32": 4,
    "U16": 2,
    "U8": 1,
    "BOOL": 1,
}
"""Bytes of one element of each dtype a header may name."""

FLOATS = frozenset({"F64", "F32", "F16", "BF16"})
"""dtypes a weight may have."""


@dataclass(frozen=True, slots=True)
class TensorEntry:
    """Where one tensor lies and what it is."""

    file: Path
    dtype: str
    shape: tuple[int, ...]


def read_header(path: Path, faults: list[str]) -> dict[str, TensorEntry]:
    """Read one file's header; what is wrong with it is appended to `faults`, each naming the file (and tensor)."""
    raw = _raw_header(path, faults)
    if raw is None:
        return {}
    header, data_bytes = raw
    entries: dict[str, TensorEntry] = {}
    covered = 0
    for name, value in header.items():
        if name == "__metadata__":
            continue
        parsed = _entry(path, name, value, faults)
        if parsed is None:
            continue
        entry, start, end = parsed
        entries[name] = entry
        covered = max(covered, end)
        if end > data_bytes:
            faults.append(f"{path.name}: truncated: tensor {name!r} needs data bytes {start} to {end}, of {data_bytes}")
    if covered < data_bytes:
        faults.append(f"{path.name}: {data_bytes - covered} bytes after the last tensor belong to none")
    return entries


def _raw_header(path: Path, faults: list[str]) -> tuple[dict[str, Any], int] | None:
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            prefix = file.read(8)
            if len(prefix) < 8:
                faults.append(f"{path.name}: truncated: {size} bytes are too few for a safetensors file")
                return None
            (length,) = struct.unpack("<Q", prefix)
            if length > size - 8:
                faults.append(f"{path.name}: truncated: the header says {length} bytes, the file holds {size - 8}")
                return None
            header = json.loads(file.read(length))
    except OSError as error:
        faults.append(f"{path.name}: cannot be read: {error.strerror or error}")
        return None
    except ValueError:
        faults.append(f"{path.name}: the header is not JSON: not a safetensors file, or damaged")
        return None
    if not isinstance(header, dict):
        faults.append(f"{path.name}: the header is not a JSON object")
        return None
    return header, size - 8 - length


def _entry(path: Path, name: str, value: Any, faults: list[str]) -> tuple[TensorEntry, int, int] | None:
    try:
        dtype, shape = str(value["dtype"]), tuple(int(n) for n in value["shape"])
        start, end = (int(n) for n in value["data_offsets"])
    except (KeyError, TypeError, ValueError):
        faults.append(f"{path.name}: tensor {name!r} has a malformed header entry")
        return None
    if dtype not in DTYPE_BYTES:
        faults.append(f"{path.name}: tensor {name!r} has the unknown dtype {dtype!r}")
        return None
    needed = math.prod(shape) * DTYPE_BYTES[dtype]
    if end - start != needed or start < 0:
        faults.append(
            f"{path.name}: tensor {name!r} spans data bytes {start} to {end}; "
            f"shape {list(shape)} of {dtype} needs {needed}"
        )
        return None
    return TensorEntry(path, dtype, shape), start, end
