"""From what a user names to settings: a settings file, or matrices and suites with the usual checks before them."""

import datetime as dt
import os
import re
import shlex
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any, Final

import msgspec

from staticfire.harness.errors import InputError
from staticfire.harness.matrix import load as load_matrix
from staticfire.harness.pipeline import settings as files
from staticfire.harness.pipeline.settings import Check, MatrixWork, Settings, TestWork

DEFAULT: Final = Path(".buildkite/staticfire.toml")
_TABLES: Final = frozenset({"pipeline", "devices", "check", "tests"})


def settings(names: Sequence[str], root: Path, today: dt.date, timings: Iterable[str] = ()) -> Settings:
    """The settings that sources stand for.

    Args:
        names: One settings file, or matrices (paths or names) and folders or files of tests.
        root: Of the checkout.
        today: Decides whether an excuse has ended.
        timings: JUnit files or folders, besides those that the settings name.

    Raises:
        InputError: A source that is none of these, or faults in one.
    """
    if not names:
        if not (root / DEFAULT).is_file():
            raise InputError(f"name a matrix, a folder of tests or a settings file: there is no {DEFAULT} here.")
        names = (str(DEFAULT),)
    described = [name for name in names if _is_settings(root / name)]
    if described and len(names) > 1:
        raise InputError(f"{described[0]} describes a whole pipeline: name it alone, not with other sources.")
    made = files.load(root / described[0], today) if described else _usual(names, root)
    return msgspec.structs.replace(made, timings=(*made.timings, *timings))


def _is_settings(path: Path) -> bool:
    """Whether a file describes a pipeline; a matrix has axes."""
    if path.suffix != ".toml" or not path.is_file():
        return False
    try:
        raw: Mapping[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return (bool(_TABLES & set(raw)) or isinstance(raw.get("matrix"), list)) and "axes" not in raw


def _usual(names: Sequence[str], root: Path) -> Settings:
    """Settings for matrices and suites: what runs before them on a CPU, then they."""
    suites = [name for name in names if (root / name).is_dir() or name.endswith(".py")]
    matrices = [name for name in names if name not in suites]
    faults = [f"{name!r} names nothing." for name in names if not name.strip()]
    for number, name in enumerate(suites):
        twice = [other for other in suites[:number] if _within(name, other) or _within(other, name)]
        faults += [f"{name} and {other} have tests in common, which would run twice: name one." for other in twice]
    faults += [f"{name} is named twice." for name in dict.fromkeys(matrices) if matrices.count(name) > 1]
    if faults:
        raise InputError("\n".join(faults))
    keys: set[str] = {"check", "sync", "kernels"}
    tests = tuple(TestWork(key=_key(name, keys), path=name.rstrip("/")) for name in suites)
    cells = tuple(MatrixWork(key=_key(name, keys), file=name) for name in matrices)
    checks: list[Check] = []
    if suites:
        paths, report = shlex.join(work.path for work in tests), "staticfire-report/check.md"
        command = f"mkdir -p staticfire-report && staticfire check {paths} --engine reference --format buildkite"
        checks.append(Check(key="check", command=f"{command} --output {report}", annotation=report))
    for work in cells:
        name = shlex.quote(work.file)
        checks.append(Check(key=_key(f"matrix-{work.key}", keys), command=f"staticfire matrix {name} > /dev/null"))
    if cells:
        model = str(load_matrix(_path(cells[0].file, root)).document.axes["model"][0])
        checks.append(Check(key="sync", command=f"staticfire sync --engine reference {shlex.quote(model)}"))
        checks.append(Check(key="kernels", command="staticfire kernels --check"))
    return Settings(check=tuple(checks), matrix=cells, tests=tests)


def _within(name: str, other: str) -> bool:
    return PurePath(os.path.normpath(name)).is_relative_to(os.path.normpath(other))


def _path(name: str, root: Path) -> str:
    return str(root / name) if (root / name).is_file() else name


def _key(name: str, taken: set[str]) -> str:
    """A key that says the name, and that nothing else has."""
    base = re.sub(r"[^a-z0-9_]+", "-", name.removesuffix(".toml").removesuffix(".py").lower()).strip("-")[:60]
    base = base or "step"
    key, number = base, 2
    while key in taken:
        key, number = f"{base}-{number}", number + 1
    taken.add(key)
    return key
