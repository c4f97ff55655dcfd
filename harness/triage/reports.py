"""Failures out of the files of a build: JUnit files and logs, told apart by how they begin."""

import gzip
import io
import re
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, cast

from staticfire.harness import junit
from staticfire.harness.errors import InputError
from staticfire.harness.junit import TestCase
from staticfire.harness.shard.durations import file_of
from staticfire.harness.triage import logs
from staticfire.harness.triage.base import Failure, Seen
from staticfire.harness.triage.causes import VAGUE, WRAPPERS
from staticfire.harness.triage.commands import pytest_command, rerun
from staticfire.harness.triage.tracebacks import raised

MAX_TEXT: Final = 4_000
MAX_LOG: Final = 500_000_000
MAX_LINE: Final = 1 << 20
SUFFIXES: Final = (".xml", ".log", ".txt", ".xml.gz", ".log.gz", ".txt.gz")
SNIFFED: Final = 4096
"""Bytes at the beginning that tell what a file is."""
_BEGINNINGS: Final = (b"<?xml", b"<testsuite")
_BLANK: Final = b" \t\r\n\xef\xbb\xbf"
_RERUN: Final = re.compile(r"^rerun: (.*)$", re.MULTILINE)


def read(paths: Iterable[Path]) -> tuple[Seen, ...]:
    """Read files, and those in folders. In a folder, a report that cannot be read is a failure like any other.

    Raises:
        InputError: A path that is not there, a file that cannot be read, or a folder without any report.
    """
    return tuple(_one(path, str(path)) if named else _tolerant(path, str(path)) for path, named in _files(paths))


def read_junit(paths: Iterable[Path], root: Path) -> tuple[Seen, ...]:
    """Read the JUnit files among paths and in folders, and nothing else that lies there.

    One that was cut short, as by a job that was killed, is a failure itself and hides none of the others.

    Args:
        paths: As the build's artifacts are called; what is not there has not reported.
        root: The folder they lie in.
    """
    found = junit.files(root / path for path in paths if (root / path).exists())
    return tuple(_tolerant(path, _named(path, root), xml=True) for path in found)


def _named(path: Path, root: Path) -> str:
    """A report's path below the root; as it is where it lies elsewhere."""
    return str(path.relative_to(root) if path.is_relative_to(root) else path)


def _files(paths: Iterable[Path]) -> Iterator[tuple[Path, bool]]:
    """Files, and whether somebody named them."""
    for path in paths:
        if path.is_dir():
            found = sorted(file for file in path.rglob("*") if file.name.endswith(SUFFIXES) and file.is_file())
            if not found:
                raise InputError(f"{path}: no report in this folder: no file ends in {', '.join(SUFFIXES)}.")
            yield from ((file, False) for file in found)
        elif path.exists():
            yield path, True
        else:
            raise InputError(f"{path}: no such file or folder.")


def _tolerant(path: Path, name: str, *, xml: bool = False) -> Seen:
    try:
        return _one(path, name, xml=xml)
    except InputError as error:
        said = str(error).removeprefix(f"{name}: ")
        return Seen(name, 0, (Failure(name, f"The report cannot be read: {said}", report=name),))


def _one(path: Path, name: str, *, xml: bool = False) -> Seen:
    try:
        with _opened(path) as file:
            head = file.peek(SNIFFED)[:SNIFFED]
            if xml or path.name.endswith((".xml", ".xml.gz")) or head.lstrip(_BLANK).startswith(_BEGINNINGS):
                return _junit(file, name)
            if b"\0" in head or path.suffix == ".json":
                what = "JSON" if path.suffix == ".json" else "binary"
                raise InputError(f"{name}: {what}; triage reads JUnit files and logs, as they are or by gzip.")
            return Seen(name, 0, logs.read_lines(_lines(file, name), name))
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{name}: {getattr(error, 'strerror', None) or error}.") from error


@contextmanager
def _opened(path: Path) -> Iterator[io.BufferedReader]:
    """The content of a file, unpacked where it is packed."""
    with path.open("rb") as file:
        if file.peek(2)[:2] != b"\x1f\x8b":
            yield file
            return
        with gzip.GzipFile(fileobj=file, mode="rb") as packed:
            yield io.BufferedReader(cast("io.RawIOBase", packed))


def _lines(file: io.BufferedReader, name: str) -> Iterator[str]:
    size = 0
    while line := file.readline(MAX_LINE):
        size += len(line)
        if size > MAX_LOG:
            raise InputError(f"{name}: larger than {MAX_LOG:,} bytes.")
        yield line.decode("utf-8", "replace")


def _junit(file: io.BufferedReader, name: str) -> Seen:
    content = file.read(junit.MAX_BYTES + 1)
    if len(content) > junit.MAX_BYTES:
        raise InputError(f"{name}: larger than {junit.MAX_BYTES:,} bytes; that is no report of tests.")
    cases = junit.parse(content, name)
    bad = tuple(_failure(case, name) for case in cases if case.bad)
    # A test that was tried again stands there twice.
    ran = {(case.file, case.classname, case.name) for case in cases if case.outcome != "skipped"}
    return Seen(name, len(ran), bad)


def _failure(case: TestCase, report: str) -> Failure:
    properties = dict(case.properties)
    cell = "verdict" in properties
    file = "" if cell else file_of(case)
    identity = case.name if cell or not file else f"{file}::{_inside(case, file)}{case.name}"
    said = _RERUN.search(case.text)
    ours = rerun(said[1]) if said else None
    message = case.message
    if not message or VAGUE.match(message) or WRAPPERS.search(message):
        told = [one for one in raised(case.text.splitlines()) if not WRAPPERS.search(one)]
        root = told[-1] if told else next((one.message for one in logs.read(case.output, report)), "")
        message = root or message or next(iter(case.text.strip().splitlines()), case.outcome)
    return Failure(
        id=identity,
        message=message,
        text=case.text[-MAX_TEXT:],
        report=report,
        cell=cell,
        file=file,
        rule=properties.get("rule", "") if cell else "",
        rerun=ours.command if ours else "" if cell or not file else pytest_command([identity]),
    )


def _inside(case: TestCase, file: str) -> str:
    """Classes between the module and the test, as pytest's node ids have them."""
    module = file.removesuffix(".py").replace("/", ".")
    classes = case.classname.removeprefix(module).strip(".") if case.classname.startswith(module) else ""
    return "".join(f"{name}::" for name in classes.split(".") if name)
