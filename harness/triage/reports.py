"""Failures out of the files of a build: JUnit files and logs, told apart by how they begin."""

import re
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from staticfire.harness import junit
from staticfire.harness.errors import InputError
from staticfire.harness.junit import TestCase
from staticfire.harness.shard.durations import file_of
from staticfire.harness.triage import logs
from staticfire.harness.triage.base import Failure, Seen
from staticfire.harness.triage.causes import WRAPPERS

MAX_TEXT: Final = 4_000
MAX_LOG: Final = 500_000_000
SUFFIXES: Final = (".xml", ".log", ".txt")
_RERUN: Final = re.compile(r"^rerun: (.*)$", re.MULTILINE)
_RAISED: Final = re.compile(r"^E\s{2,}((?:\w+\.)*\w+: .*)$", re.MULTILINE)


def read(paths: Iterable[Path]) -> tuple[Seen, ...]:
    """Read files, and those in folders.

    Raises:
        InputError: A path that is not there, or a file that cannot be read.
    """
    return tuple(_one(path, str(path)) for path in _files(paths))


def read_junit(paths: Iterable[Path], root: Path) -> tuple[Seen, ...]:
    """Read the JUnit files among paths and in folders, and nothing else that lies there.

    Args:
        paths: As the build's artifacts are called; what is not there has not reported.
        root: The folder they lie in.

    Raises:
        InputError: A file that cannot be read.
    """
    found = junit.files(root / path for path in paths if (root / path).exists())
    return tuple(_one(path, str(path.relative_to(root))) for path in found)


def _files(paths: Iterable[Path]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            found = {file for suffix in SUFFIXES for file in path.rglob(f"*{suffix}") if file.is_file()}
            yield from sorted(found)
        elif path.exists():
            yield path
        else:
            raise InputError(f"{path}: no such file or folder.")


def _one(path: Path, name: str) -> Seen:
    try:
        if path.stat().st_size > MAX_LOG:
            raise InputError(f"{path}: larger than {MAX_LOG:,} bytes.")
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}.") from error
    if content.lstrip().startswith(b"<"):
        cases = junit.parse(content, name)
        bad = tuple(_failure(case, name) for case in cases if case.bad)
        return Seen(name, sum(case.outcome != "skipped" for case in cases), bad)
    return Seen(name, 0, logs.read(content.decode("utf-8", "replace"), name))


def _failure(case: TestCase, report: str) -> Failure:
    properties = dict(case.properties)
    cell = "verdict" in properties
    file = "" if cell else file_of(case)
    identity = case.name if cell or not file else f"{file}::{_inside(case, file)}{case.name}"
    rerun = _RERUN.search(case.text)
    message = case.message
    if WRAPPERS.search(message) or not message:
        raised = [told for told in _RAISED.findall(case.text) if not WRAPPERS.search(told)]
        message = raised[-1] if raised else message or next(iter(case.text.strip().splitlines()), case.outcome)
    return Failure(
        id=identity,
        message=message,
        text=case.text[-MAX_TEXT:],
        report=report,
        cell=cell,
        file=file,
        rule=properties.get("rule", "") if cell else "",
        rerun=rerun[1] if rerun else "" if cell or not file else shlex.join(["pytest", identity]),
    )


def _inside(case: TestCase, file: str) -> str:
    """Classes between the module and the test, as pytest's node ids have them."""
    module = file.removesuffix(".py").replace("/", ".")
    classes = case.classname.removeprefix(module).strip(".") if case.classname.startswith(module) else ""
    return "".join(f"{name}::" for name in classes.split(".") if name)
