"""Folders for the sockets and meeting places of processes, which go when their owner does, whatever becomes of it."""

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from staticfire.engine.errors import EngineStartError
from staticfire.engine.process.owner import Owner

PREFIX: Final = "staticfire-"
OWNER: Final = "owner"
"""A file that the owner holds locked for as long as it lives; the kernel lets go of it, however the owner ends."""

NAME_BYTES: Final = 8
"""The longest name of a socket in a folder."""

PATH_BYTES: Final = 103
"""The path of a socket has at most so many; Linux alone takes 107."""

ADDED_BYTES: Final = len(f"/{PREFIX}12345678/") + NAME_BYTES
"""What a name in a folder is longer than the place of the folder; `tempfile` adds eight letters to a prefix."""

LAST_RESORT: Final = "/tmp"  # noqa: S108 - the folder made there is private


class PrivateFolder:
    """A folder that only this user can enter.

    It is removed by `remove`. Where its owner was killed with all who could have done that, the next one made in the
    same place does it.

    Attributes:
        path: Where it is.
    """

    def __init__(self) -> None:
        """Make it where temporary files go, or in /tmp if sockets there had too long or too odd a path.

        Raises:
            EngineStartError: No place can be written to.
        """
        self._owner = Owner()
        self.path, self._lock = _make()
        _sweep(self.path.parent)

    def address(self, name: str) -> str:
        """The ipc address of a name in the folder."""
        assert len(name) <= NAME_BYTES, name
        return f"ipc://{self.path / name}"

    def remove(self) -> None:
        """Remove it with all that is in it; a second call does nothing, nor one in a fork."""
        if not self._owner.is_here():
            return
        shutil.rmtree(self.path, ignore_errors=True)
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


def _make() -> tuple[Path, int]:
    problems: list[str] = []
    for place in _places(problems):
        try:
            path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=place))
        except OSError as error:
            problems.append(f"{place}: {error.strerror or error}")
            continue
        try:
            return path, _own(path)
        except OSError as error:
            shutil.rmtree(path, ignore_errors=True)
            problems.append(f"{place}: {error.strerror or error}")
    raise EngineStartError(f"no folder for the sockets of processes can be made: {'; '.join(problems)}")


def _places(problems: list[str]) -> Iterator[str]:
    try:
        usual = tempfile.gettempdir()
    except OSError as error:
        problems.append(error.strerror or str(error))
    else:
        if len(os.fsencode(usual)) + ADDED_BYTES <= PATH_BYTES and usual.isprintable():
            yield usual
        else:
            problems.append(f"{usual!r}: the paths of sockets there are too long or too odd")
    yield LAST_RESORT


def _own(folder: Path) -> int:
    """Lock a file in the folder; it is there under its name only once it is locked."""
    unfinished = folder / f"{OWNER}.new"
    lock = os.open(unfinished, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        with contextlib.suppress(OSError):  # a file system without locks: then nobody can lock it, so nobody sweeps
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            unfinished.rename(folder / OWNER)
    except BaseException:
        os.close(lock)
        raise
    return lock


def _sweep(place: Path) -> None:
    """Remove the folders of owners that died without anybody to do it."""
    with contextlib.suppress(OSError):
        for entry in os.scandir(place):
            with contextlib.suppress(OSError):
                if entry.name.startswith(PREFIX) and entry.is_dir(follow_symlinks=False):
                    _sweep_one(Path(entry.path))


def _sweep_one(folder: Path) -> None:
    if folder.lstat().st_uid != os.geteuid():
        return
    lock = os.open(folder / OWNER, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # an owner that lives has it: BlockingIOError
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(lock)
