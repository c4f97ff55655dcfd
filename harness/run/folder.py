"""The folder a run writes to: one run at a time, and nothing of an earlier run lost."""

import errno
import fcntl
import os
import re
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Self

from staticfire.harness.files import open_regular
from staticfire.harness.run.errors import RunUsageError
from staticfire.harness.run.journal import NAME as JOURNAL

DEFAULT = Path("staticfire-report")
LOCK = ".lock"
EARLIER = "earlier"
_PID = re.compile(rb"\d+\n?")


class RunFolder:
    """A run's folder, locked while entered. The lock goes with the process, however it ends.

    Attributes:
        path: The folder.
        journal: Path of the journal in it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.journal = path / JOURNAL
        self._lock = -1

    def __enter__(self) -> Self:
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.path) as probe:
                probe.write(b"\n")
            self._lock = open_regular(self.path / LOCK, os.O_CREAT | os.O_RDWR)
        except OSError as error:
            if error.errno in {errno.ELOOP, errno.EINVAL}:
                raise RunUsageError(
                    f"--out {self.path}: {LOCK} in it is no regular file; remove it, or name another folder with --out"
                ) from error
            raise RunUsageError(
                f"--out {self.path}: cannot write there ({error.strerror or error}); name another folder with --out"
            ) from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.read(self._lock, 32).decode("ascii", "replace").strip() or "unknown"
            os.close(self._lock)
            raise RunUsageError(
                f"--out {self.path}: another run is writing there (process {holder}); wait for it, or use --out"
            ) from error
        held = os.pread(self._lock, 32, 0)
        if held and not _PID.fullmatch(held):
            os.close(self._lock)
            raise RunUsageError(
                f"--out {self.path}: {LOCK} in it is no lock of a run; remove it, or name another folder with --out"
            )
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, f"{os.getpid()}\n".encode(), 0)
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._lock)

    def set_aside(self, names: Iterable[str]) -> Path | None:
        """Move an earlier run's files to a folder of their own under `earlier/`; None if there is no journal."""
        if not self.journal.exists():
            return None
        target = self._next_earlier()
        # the journal goes last: while it is here, the move is still to be done
        for name in [*(name for name in names if name != JOURNAL), JOURNAL]:
            source = self.path / name
            if source.exists():
                source.rename(target / name)
        return target

    def _next_earlier(self) -> Path:
        earlier = self.path / EARLIER
        earlier.mkdir(exist_ok=True)
        numbers = [int(entry.name) for entry in earlier.iterdir() if entry.name.isdecimal()]
        target = earlier / f"{max(numbers, default=0) + 1:04d}"
        target.mkdir()
        return target
