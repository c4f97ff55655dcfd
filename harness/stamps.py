"""Whether a file is still what it was when something was read out of it."""

import hashlib
import time
from dataclasses import dataclass, field
from pathlib import Path

_SETTLED = 2_000_000_000
"""Nanoseconds after which a change gets another time of change on every file system: FAT counts in two seconds.

A file that was changed later than that before it was looked at may be changed once more without a trace in its times,
so its content is compared too, as git does with files that it calls racily clean.
"""


@dataclass(frozen=True, slots=True)
class Stamp:
    """What tells one state of a file from another.

    Attributes:
        size: Bytes, -1 where there is no file.
        changed: Time of the last change of the content, in nanoseconds.
        status: Time of the last change of anything about it; nobody can set this one back.
        node: Number of the file in its file system: another one took its place where this differs.
        content: Hash of the content, where the times alone do not tell; empty where they do.
    """

    size: int
    changed: int
    status: int
    node: int
    content: str = ""

    def holds(self, path: Path) -> bool:
        """Whether a file is still in this state."""
        now = _times(path)
        if now != (self.size, self.changed, self.status, self.node):
            return False
        return not self.content or self.content == _content(path)


def stamp(path: Path) -> Stamp:
    """The state of a file; to be taken before anything is read out of it."""
    before = time.time_ns()
    size, changed, status, node = _times(path)
    if size >= 0 and max(changed, status) > before - _SETTLED:
        return Stamp(size, changed, status, node, _content(path))
    return Stamp(size, changed, status, node)


@dataclass(slots=True)
class Stamps:
    """The states of files as they were before anything was read out of them."""

    _taken: dict[Path, Stamp] = field(default_factory=dict)

    def of(self, path: Path) -> Stamp:
        """The state of a file when it was first asked for here."""
        found = self._taken.get(path)
        if found is None:
            found = self._taken[path] = stamp(path)
        return found


def _times(path: Path) -> tuple[int, int, int, int]:
    try:
        status = path.stat()
    except OSError:
        return -1, -1, -1, -1
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino


def _content(path: Path) -> str:
    if not path.is_file():
        return "no file"  # a pipe would be waited for
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return "unreadable"


__all__ = ["Stamp", "Stamps", "stamp"]
