"""Standard output and error of the program, when nobody reads them, when they are closed, and when the disk is full."""

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from staticfire.harness.files import write_whole
from staticfire.harness.log import safe, safe_json, safe_xml


class OutputError(Exception):
    """Something that was asked for cannot be written; the text says where to, and why."""


def echo(text: object = "", *, err: bool = False, nl: bool = True) -> None:
    """Print text for people, which may hold words of others: nothing in it is a command of the log that shows it."""
    click.echo(safe(str(text)), err=err, nl=nl)


def echo_json(text: str, *, nl: bool = True) -> None:
    """Print a JSON text; the data stay as they are."""
    click.echo(safe_json(text), nl=nl)


def echo_xml(text: str, *, nl: bool = True) -> None:
    """Print an XML text; the data stay as they are."""
    click.echo(safe_xml(text), nl=nl)


def echo_raw(text: str, *, err: bool = False, nl: bool = True) -> None:
    """Print what a program reads as it is, or what is all ours."""
    click.echo(text, err=err, nl=nl)


class _Stream(io.FileIO):
    """A descriptor whose reader may go away, and whose first failure is told once, as an `OutputError`.

    A reader that went away (`| head`) is no failure: the verb goes on to its exit code. After a failure everything is
    swallowed, for Python flushes once more when it ends. Without a title no failure is told.
    """

    def __init__(self, descriptor: int, title: str) -> None:
        super().__init__(descriptor, "w", closefd=False)
        self._title = title
        self._lost = False

    def write(self, data: Any) -> int:
        """Write, or lose what cannot be written."""
        size = memoryview(data).nbytes
        if self._lost:
            return size
        try:
            return super().write(data) or 0
        except BrokenPipeError:
            self._lost = True
            return size
        except OSError as error:
            self._lost = True
            if not self._title:
                return size
            raise OutputError(f"{self._title} cannot be written: {error.strerror}.") from error


class _Closed(io.TextIOBase):
    """Standard output that was closed before the program started: nothing can be written, and that is told."""

    def write(self, text: str) -> int:
        """Refuse."""
        if text:
            raise OutputError("standard output is closed: there is nowhere to write.")
        return 0


@contextmanager
def standard_streams() -> Iterator[None]:
    """Replace the process's own standard streams for one run of the program; those of a test or a caller stay."""
    _occupy()
    kept = (sys.stdout, sys.stderr)
    if sys.stdout is None:
        sys.stdout = _closed()
    elif sys.stdout is sys.__stdout__:
        sys.stdout = _opened(sys.stdout, "standard output")
    if sys.stderr is None:
        # Nowhere to say anything: the exit code is all that is left.
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 -- serves as long as the program
    elif sys.stderr is sys.__stderr__:
        sys.stderr = _opened(sys.stderr, "")
    try:
        yield
    finally:
        sys.stdout, sys.stderr = kept


def _closed() -> Any:
    return _Closed()


def _opened(stream: Any, title: str) -> Any:
    try:
        stream.flush()
        raw = _Stream(stream.fileno(), title)
    except (OSError, ValueError):
        return stream
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=stream.encoding,
        errors=stream.errors,
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )


def _occupy() -> None:
    """Take descriptors 0 to 2 if they are free: else a file that is opened next would be a child's standard output."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)


def write_file(path: Path, text: str, option: str) -> None:
    """Write a file that an option names: whole or not at all; a device or a pipe is written as it is.

    Raises:
        OutputError: It cannot be written.
    """
    need_folder(path, option)
    content = text.encode("utf-8", "backslashreplace")
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(content)
        else:
            write_whole(path.resolve(), content)
    except OSError as error:
        raise OutputError(f"{option} {path}: {error.strerror or error}.") from error


def need_folder(path: Path | None, option: str) -> None:
    """See early, before any work, that a file which an option names has a folder to be written to.

    Raises:
        OutputError: It has none.
    """
    if path is not None and not path.parent.is_dir():
        raise OutputError(f"{option} {path}: the folder {path.parent} is not there.")
