"""The journal: verdicts as they come, on disk before anybody is told of them.

JSON lines: a header, then one `CellResult` a line, each flushed and fsynced. A kill can tear only the last line;
reading leaves it out and the next append writes over it. Anything else that does not decode is damage, and is reported.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Self

import msgspec

from staticfire.harness.files import open_regular, read_regular
from staticfire.harness.run.errors import RunUsageError
from staticfire.harness.run.identity import Identity
from staticfire.harness.run.result import CellResult

VERSION = 1
NAME = "journal.jsonl"


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """First line of a journal.

    Attributes:
        staticfire_journal: Version of the journal's form.
        started: When, ISO 8601 in UTC.
        identity: Matrix and code that the verdicts belong to.
        cells: Ids of the selected cells, in the matrix's order.
    """

    staticfire_journal: int
    started: str
    identity: Identity
    cells: Sequence[str]


class Contents(msgspec.Struct, frozen=True, kw_only=True):
    """What a journal holds.

    Attributes:
        header: Its first line.
        results: Verdicts in the order in which they came.
        size: Bytes of the sound part; what follows is a torn line.
    """

    header: Header
    results: Sequence[CellResult]
    size: int


class Journal:
    """An open journal, to be appended to. Use as a context manager."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._size = os.lseek(descriptor, 0, os.SEEK_END)

    @classmethod
    def create(cls, path: Path, header: Header) -> Self:
        """Start a new journal.

        Raises:
            FileExistsError: There is one.
            OSError: It cannot be written.
        """
        journal = cls(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_APPEND, 0o644))
        try:
            journal._write(header)
            _sync_folder(path.parent)
        except BaseException:
            journal.close()
            path.unlink()
            raise
        return journal

    @classmethod
    def reopen(cls, path: Path, contents: Contents) -> Self:
        """Go on with a journal that was read: cut the torn line off, append after it."""
        descriptor = open_regular(path, os.O_WRONLY | os.O_APPEND)
        os.ftruncate(descriptor, contents.size)
        return cls(descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)

    def append(self, result: CellResult) -> None:
        """Make a verdict permanent: when this returns, it survives a kill.

        Raises:
            OSError: It cannot be written; the journal is as it was before.
        """
        self._write(result)

    def _write(self, record: Header | CellResult) -> None:
        line = msgspec.json.encode(record) + b"\n"
        try:
            rest = memoryview(line)
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
            os.fsync(self._descriptor)
        except OSError:
            os.ftruncate(self._descriptor, self._size)
            raise
        self._size += len(line)


def read(path: Path) -> Contents:
    """Read a journal.

    Raises:
        RunUsageError: It is no journal, of another form, or damaged elsewhere than in its last line.
        FileNotFoundError: There is none.
        OSError: It cannot be read, or is no regular file.
    """
    data = read_regular(path)
    lines = data.split(b"\n")
    torn = lines.pop()  # empty after a whole line
    if not lines:
        raise RunUsageError(f"{path} is no journal: its first line is incomplete; {AFRESH}")
    header = _header(path, lines[0])
    results: list[CellResult] = []
    seen: set[str] = set()
    size = len(lines[0]) + 1
    for number, line in enumerate(lines[1:], 2):
        try:
            result = msgspec.json.decode(line, type=CellResult)
        except msgspec.DecodeError as error:
            if number == len(lines) and not torn:
                break  # a line that never reached the disk whole, although its end did
            raise RunUsageError(f"{path}, line {number}: the journal is damaged ({error}); {AFRESH}") from error
        if result.id in seen:
            raise RunUsageError(f"{path}, line {number}: a second verdict for {result.id!r}; {AFRESH}")
        seen.add(result.id)
        results.append(result)
        size += len(line) + 1
    return Contents(header=header, results=results, size=size)


AFRESH = "run without --resume to start afresh (the journal is kept aside)"


def _header(path: Path, line: bytes) -> Header:
    try:
        version = msgspec.json.decode(line, type=dict[str, object]).get("staticfire_journal")
        if version == VERSION:
            return msgspec.json.decode(line, type=Header)
    except msgspec.DecodeError as error:
        raise RunUsageError(f"{path} is no journal of staticfire ({error}); {AFRESH}") from error
    raise RunUsageError(f"{path} has the form {version!r}, this version reads {VERSION}; {AFRESH}")


def _sync_folder(folder: Path) -> None:
    """A new file's name is on disk only when its folder is."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
