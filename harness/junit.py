"""JUnit files as values: what sharding, triage and annotations read of them."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal
from xml.etree import ElementTree as ET

from staticfire.harness.errors import InputError

Outcome = Literal["passed", "failed", "error", "skipped"]
MAX_BYTES: Final = 200_000_000
"""Larger files are no reports of tests."""
_OUTPUT: Final = ("system-out", "system-err")


@dataclass(frozen=True, slots=True)
class TestCase:
    """One test case.

    Attributes:
        name: As the file says; the id of a cell, or a test with its parameters.
        classname: As the file says; empty where there is none.
        file: Path of the test's file, where the report says it.
        seconds: How long it took.
        outcome: What became of it.
        message: One line, for a failure.
        text: The rest of a failure.
        output: What a failed test printed, where the report keeps that.
        properties: Name -> value.
        report: The file it was read from.
    """

    __test__ = False  # no class for pytest to collect

    name: str
    classname: str = ""
    file: str = ""
    seconds: float = 0.0
    outcome: Outcome = "passed"
    message: str = ""
    text: str = ""
    output: str = ""
    properties: tuple[tuple[str, str], ...] = field(default=())
    report: str = ""

    @property
    def bad(self) -> bool:
        """Whether it failed."""
        return self.outcome in {"failed", "error"}


def read(path: Path) -> tuple[TestCase, ...]:
    """Read one file.

    Raises:
        InputError: It is missing, too large, no XML, or declares entities.
    """
    try:
        if path.stat().st_size > MAX_BYTES:
            raise InputError(f"{path}: larger than {MAX_BYTES:,} bytes; that is no report of tests.")
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}.") from error
    return parse(content, str(path))


def parse(content: bytes, where: str) -> tuple[TestCase, ...]:
    """Read the content of a file.

    Raises:
        InputError: It is no XML, declares entities, or holds no test suite.
    """
    if b"<!DOCTYPE" in content or b"<!ENTITY" in content:
        raise InputError(f"{where}: declares a document type or entities, which no JUnit file needs.")
    try:
        root = ET.fromstring(content)  # noqa: S314 -- no entities are left that could expand
    except (ET.ParseError, LookupError, ValueError) as error:  # the others: an encoding that Python does not know
        raise InputError(f"{where}: not XML: {error}.") from error
    if root.tag not in {"testsuites", "testsuite"}:
        raise InputError(f"{where}: a JUnit file begins with <testsuites> or <testsuite>, this with <{root.tag}>.")
    return tuple(_case(case, where) for case in root.iter("testcase"))


def files(paths: Iterable[Path]) -> Iterator[Path]:
    """The files among paths, folders searched for `*.xml`, in a stable order.

    Raises:
        InputError: A path that is not there.
    """
    for path in paths:
        if path.is_dir():
            yield from sorted(path.rglob("*.xml"))
        elif path.is_file():
            yield path
        else:
            raise InputError(f"{path}: no such file or folder.")


def _case(case: ET.Element, where: str) -> TestCase:
    outcome: Outcome = "passed"
    fault: ET.Element | None = None
    kinds: tuple[tuple[str, Outcome], ...] = (("error", "error"), ("failure", "failed"), ("skipped", "skipped"))
    for tag, kind in kinds:
        fault = case.find(tag)
        if fault is not None:
            outcome = kind
            break
    text = (fault.text or "") if fault is not None else ""
    return TestCase(
        name=case.get("name", ""),
        classname=case.get("classname", ""),
        file=case.get("file", ""),
        seconds=_seconds(case.get("time")),
        outcome=outcome,
        message=fault.get("message", "") if fault is not None else "",
        text=text,
        output="" if fault is None else "\n".join(part.text or "" for tag in _OUTPUT for part in case.iterfind(tag)),
        properties=tuple((p.get("name", ""), p.get("value", "")) for p in case.iterfind("properties/property")),
        report=where,
    )


def _seconds(text: str | None) -> float:
    """A time; 0 where there is none that means anything."""
    try:
        seconds = float((text or "0").replace(",", ""))
    except ValueError:
        return 0.0
    return seconds if math.isfinite(seconds) and seconds > 0 else 0.0
