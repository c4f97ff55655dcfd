"""Which files a scan reads: every regular file under the given paths once, and what it is called."""

import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from staticfire.harness.errors import InputError
from staticfire.harness.scan.base import Unread

KINDS = {".py": "python", ".sh": "shell", ".bash": "shell", ".yaml": "yaml", ".yml": "yaml"}
LEFT_OUT = frozenset({"__pycache__", "node_modules", ".git", ".venv", "venv", ".tox", ".mypy_cache", ".ruff_cache"})
_SPECIAL = (
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


@dataclass(slots=True)
class Found:
    """What there is to read.

    Attributes:
        files: Absolute paths, sorted; no two name the same file.
        notes: Entries that look like sources by their names and are no files.
    """

    files: list[Path] = field(default_factory=list)
    notes: list[Unread] = field(default_factory=list)


def shown(path: Path, root: Path | None = None) -> str:
    """How locations name a file: by its path from `root`, the current folder, where it lies below, else absolute."""
    root = root if root is not None else Path.cwd()
    return (path.relative_to(root) if path.is_relative_to(root) else path).as_posix()


def find(paths: Sequence[Path | str]) -> Found:
    """Every source under some files and folders, named as the first path that leads to it says.

    Links to folders are not followed; a link to a file counts only where the file itself is not among the sources.

    Raises:
        InputError: A path is neither a file nor a folder; all such paths are named.
    """
    roots = [_normal(Path(path)) for path in paths]
    faults = [fault for root in roots if (fault := _fault(root))]
    if faults:
        raise InputError(f"nothing to scan: {'; '.join(faults)}.")
    found = Found()
    taken: set[str] = set()
    links: list[Path] = []
    for root in roots:
        if root.is_file():
            _take(root, os.path.realpath(root), found, taken)
        else:
            links.extend(_folder(root, found, taken))
    for link in links:
        _take(link, os.path.realpath(link), found, taken)
    found.files.sort()
    found.notes = list(dict.fromkeys(found.notes))
    return found


def _normal(path: Path) -> Path:
    """Absolute, without `..`, which behind a link is another folder than the text says."""
    absolute = path.absolute()
    plain = Path(os.path.normpath(absolute))
    try:
        return plain if plain == absolute or plain.samefile(absolute) else absolute.resolve()
    except (OSError, RuntimeError):
        return absolute


def _fault(path: Path) -> str:
    try:
        mode = path.stat().st_mode
    except OSError as error:
        return f"{path}: {error.strerror}"
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
        return ""
    return f"{path} is {_kind(mode)}, neither a file nor a folder"


def _kind(mode: int) -> str:
    return next((name for test, name in _SPECIAL if test(mode)), "no regular file")


def _folder(root: Path, found: Found, taken: set[str]) -> Iterator[Path]:
    """Take the files of a folder, and hand out the links in it."""
    real = os.path.realpath(root)
    shift = len(str(root).rstrip("/"))
    for folder, names, entries in os.walk(root, onerror=lambda error: _unlisted(error, found)):
        names[:] = [name for name in names if name not in LEFT_OUT]
        for name in entries:
            if os.path.splitext(name)[1] not in KINDS:  # noqa: PTH122 - a path object for every file is slow
                continue
            path = f"{folder.rstrip('/')}/{name}"
            if os.path.islink(path):  # noqa: PTH114 - as above
                yield Path(path)
            else:
                _take(Path(path), real.rstrip("/") + path[shift:], found, taken)


def _unlisted(error: OSError, found: Found) -> None:
    where = Path(os.fsdecode(error.filename or ""))
    found.notes.append(Unread(shown(where), 0, f"cannot be listed: {error.strerror}"))


def _take(path: Path, real: str, found: Found, taken: set[str]) -> None:
    if real in taken:
        return
    taken.add(real)
    if path.suffix not in KINDS:
        found.notes.append(Unread(shown(path), 0, f"none of {', '.join(sorted(KINDS))}"))
        return
    try:
        mode = path.stat().st_mode
    except OSError as error:
        found.notes.append(Unread(shown(path), 0, f"cannot be read: {error.strerror}"))
        return
    if stat.S_ISREG(mode):
        found.files.append(path)
    else:
        found.notes.append(Unread(shown(path), 0, f"not read: {_kind(mode)}"))


__all__ = ["KINDS", "Found", "find", "shown"]
