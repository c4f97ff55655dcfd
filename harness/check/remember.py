"""What reading an engine's source gave, kept on disk: the source of a release never changes."""

import hashlib
import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import TypeVar

from staticfire.harness.files import default_cache_dir, write_whole

T = TypeVar("T", str, list[str])


def remembered(reader: ModuleType, source: str, read: Callable[[], list[T]]) -> list[T]:
    """Return what `read` gave before for the same source and the same reader, or ask it and keep the answer.

    Args:
        reader: The module that reads; another version of it reads anew.
        source: Digest of what it reads.
        read: Reads; gives plain text, or rows of text.
    """
    code = Path(reader.__file__ or "").read_bytes()
    key = hashlib.sha256(source.encode() + code).hexdigest()[:32]
    file = default_cache_dir() / "check" / f"{reader.__name__.rpartition('.')[2]}-{key}.json"
    with suppress(OSError, ValueError):
        known: list[T] = json.loads(file.read_text(encoding="utf-8"))
        return known
    found = read()
    with suppress(OSError):  # a folder that cannot be written costs the time, not the answer
        file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(file, json.dumps(found).encode())
    return found
