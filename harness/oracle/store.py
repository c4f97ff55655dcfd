"""Answers on disk: computed once, found again by every worker, replaced whenever anything behind them changes.

One file an answer, in safetensors (arrays, and a JSON text in its header; never pickle). A file appears by one rename.
A lock a folder keeps two workers from computing the same answers at once.
"""

import fcntl
import hashlib
import json
import os
import shutil
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from staticfire.harness.files import open_regular, write_whole
from staticfire.harness.oracle.base import Array, OracleError
from staticfire.harness.stamps import Stamp, stamp

Answer = tuple[dict[str, Any], dict[str, Array]]
"""Plain values and arrays."""

KEPT_IN_MEMORY = 500
KEPT_DAYS = 30
"""A group that no process has used for so long is removed when another is computed: engines are edited often."""


class Store:
    """A folder of answers; see the module.

    Args:
        folder: Where; made when first needed.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._memory: OrderedDict[tuple[str, str], Answer] = OrderedDict()

    def get(self, group: str, key: str) -> Answer | None:
        """Find an answer, in memory or on disk; an unreadable file is no answer."""
        found = self._memory.get((group, key)) or _read(self._path(group, key))
        if found is not None:
            self._remember(group, key, found)
        return found

    def put(self, group: str, key: str, values: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
        """Keep an answer.

        Raises:
            OracleError: It cannot be written.
        """
        data = save({name: _contiguous(array) for name, array in arrays.items()}, metadata={"json": json.dumps(values)})
        try:
            path = self._path(group, key)
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, data)
        except OSError as error:
            raise OracleError(f"{self._folder}: cannot keep an oracle answer: {error.strerror or error}") from error
        self._remember(group, key, (dict(values), dict(arrays)))

    def use(self, group: str) -> None:
        """Say that a group is in use, so that it stays."""
        folder = self._folder / group
        if folder.is_dir():
            os.utime(folder)

    def prune(self) -> None:
        """Remove the groups that nobody has used for `KEPT_DAYS`."""
        oldest = time.time() - KEPT_DAYS * 86400
        for folder in self._folder.iterdir():
            if folder.is_dir() and folder.stat().st_mtime < oldest:
                shutil.rmtree(folder, ignore_errors=True)

    @contextmanager
    def lock(self, group: str) -> Iterator[None]:
        """Hold a group; whoever waited should look again before computing."""
        self._folder.mkdir(parents=True, exist_ok=True)
        with os.fdopen(open_regular(self._folder / f".{group}.lock", os.O_CREAT | os.O_RDWR), "rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _path(self, group: str, key: str) -> Path:
        return self._folder / group / f"{key}.safetensors"

    def _remember(self, group: str, key: str, answer: Answer) -> None:
        self._memory[group, key] = answer
        self._memory.move_to_end((group, key))
        while len(self._memory) > KEPT_IN_MEMORY:
            self._memory.popitem(last=False)


def digest(*parts: object) -> str:
    """Twenty hex digits over parts that JSON can hold."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()[:20]


def checkpoint_digest(folder: Path) -> str:
    """Hash of a checkpoint's content, wherever it lies: its configuration and its weights."""
    names = sorted(p.name for p in folder.iterdir() if p.suffix == ".safetensors" or p.name.endswith("config.json"))
    return digest(*((name, _file_digest(folder / name, stamp(folder / name))) for name in names))


def code_digest(folders: tuple[Path, ...]) -> str:
    """Hash of all Python sources below some folders: whose outputs are cached under it."""
    sources = [source for folder in folders for source in sorted(folder.rglob("*.py"))]
    return digest(*((source.name, _file_digest(source, stamp(source))) for source in sources))


@lru_cache(maxsize=4096)
def _file_digest(path: Path, then: Stamp) -> str:  # noqa: ARG001 - the stamp is part of the key
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read(path: Path) -> Answer | None:
    try:
        with safe_open(path, framework="numpy") as file:
            values = json.loads((file.metadata() or {})["json"])
            return values, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - no mapping
    except (FileNotFoundError, SafetensorError, KeyError, json.JSONDecodeError):
        return None


def _contiguous(array: Array) -> Array:
    return array if array.flags.c_contiguous else array.copy(order="C")
