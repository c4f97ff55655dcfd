"""What a project says of its pipeline: devices, checks, matrices, suites; docs/pipeline.md describes the file."""

import datetime as dt
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from staticfire.harness.errors import InputError, nearest
from staticfire.harness.matrix.faults import Faults
from staticfire.harness.matrix.locate import Lines
from staticfire.harness.pipeline.limits import JOBS_PER_BUILD, KEY, UUID

PYTEST: Final = "python -m pytest {files} --junitxml={junit}"
CHECKS: Final = "checks"
SUMMARY: Final = "summary"
"""Keys of the group of checks and of the last step."""
FIELDS: Final = {"files", "junit", "key", "shard"}
"""What a command of tests may name in braces."""


class _Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of the file."""


class Device(_Table, frozen=True, kw_only=True):
    """Where jobs run.

    Attributes:
        queue: Of the agents that have it.
        concurrency: Jobs that may have it at a time, over the whole organisation; for a scarce one.
        concurrency_method: In which order they get it.
        vllm: Its name in vLLM's own pipeline.
    """

    queue: str
    concurrency: int | None = None
    concurrency_method: Literal["ordered", "eager"] = "eager"
    vllm: str = ""


class Excuse(_Table, frozen=True, kw_only=True):
    """Why a failure of a step does not fail the build, who answers for that, and until when.

    Attributes:
        owner: Who.
        until: The last day.
        reason: Why.
        exit_status: Which failure is excused.
    """

    owner: str
    until: dt.date
    reason: str
    exit_status: int | Literal["*"] = 1


class _Work(_Table, frozen=True, kw_only=True):
    """What every kind of step has.

    Attributes:
        key: Stable.
        label: Shown; the key if empty.
        device: One of the devices.
        needs: Beginnings of paths: a change there selects the step, `!` leaves some out. Without any it always runs.
        depends_on: Keys of steps that come first, besides the checks.
        timeout_minutes: Of one job.
        optional: Runs only when a person says so.
        soft_fail: Declared, with an owner and an end.
        artifacts: Globs, besides the reports.
        env: For its jobs.
    """

    key: str
    label: str = ""
    device: str = "cpu"
    needs: tuple[str, ...] = ()
    depends_on: tuple[str, ...] = ()
    timeout_minutes: int = 30
    optional: bool = False
    soft_fail: Excuse | None = None
    artifacts: tuple[str, ...] = ()
    env: Mapping[str, str] = {}


class Check(_Work, frozen=True, kw_only=True):
    """A check before everything else.

    Attributes:
        command: What to run.
        annotation: A Markdown file that the command writes; shown when it fails.
    """

    command: str
    annotation: str = ""


class _Sharded(_Work, frozen=True, kw_only=True):
    """Work that is cut.

    Attributes:
        shards: How many.
        shard_minutes: Instead: as few as keep each shard below that.
        max_shards: At most so many, for `shard_minutes`.
    """

    shards: int | None = None
    shard_minutes: float | None = None
    max_shards: int = 50


class MatrixWork(_Sharded, frozen=True, kw_only=True):
    """A matrix of cells.

    Attributes:
        file: Path, or the name of one that ships with the project.
        select: `AXIS=VALUE`; only cells that meet all of them.
        options: More of `staticfire run`.
    """

    file: str
    select: tuple[str, ...] = ()
    options: str = ""


class TestWork(_Sharded, frozen=True, kw_only=True):
    """A suite of tests.

    Attributes:
        path: A folder or a file.
        command: With `{files}` and `{junit}`, each already quoted. With `{shard}` (such as `2/3`) each shard gets the
            whole path and cuts by test, as `pytest --sf-shard` does, in place of files.
        patterns: Names of files that hold tests.
        exclude: Beginnings of paths that are left out.
        depth: Cut no finer than folders so far down; 0 cuts by file.
    """

    __test__ = False  # no class for pytest to collect

    path: str
    command: str = PYTEST
    patterns: tuple[str, ...] = ("test_*.py", "*_test.py")
    exclude: tuple[str, ...] = ()
    depth: int = 0


Work = Check | MatrixWork | TestWork


class Settings(_Table, frozen=True, kw_only=True):
    """The whole file.

    Attributes:
        name: Prefix of concurrency groups.
        program: How an agent runs this program.
        setup: What each job runs first.
        report: Folder for reports, from the root of the checkout.
        timings: JUnit files, or folders of them, of earlier runs.
        run_all: Beginnings of paths a change of which selects everything.
        ignore: Beginnings of paths, or `*.suffix`, a change of which selects nothing.
        env: For every job.
    """

    name: str = "staticfire"
    program: str = "staticfire"
    setup: str = ""
    report: str = "staticfire-report"
    timings: tuple[str, ...] = ()
    run_all: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    devices: Mapping[str, Device] = msgspec.field(default_factory=lambda: {"cpu": Device(queue="cpu")})
    check: tuple[Check, ...] = ()
    matrix: tuple[MatrixWork, ...] = ()
    tests: tuple[TestWork, ...] = ()

    @property
    def work(self) -> tuple[Work, ...]:
        """Every step, checks first."""
        return (*self.check, *self.matrix, *self.tests)


_ARRAYS: Final[Mapping[str, type]] = {"check": Check, "matrix": MatrixWork, "tests": TestWork}
_HEAD: Final = ("name", "program", "setup", "report", "timings", "run_all", "ignore", "env")


def load(path: Path, today: dt.date) -> Settings:
    """Read a file.

    Raises:
        InputError: It cannot be read, or all faults in it, each with its line.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}.") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text at byte {error.start}.") from error
    return parse(text, str(path), today)


def parse(text: str, where: str, today: dt.date) -> Settings:
    """Read the text of a file.

    Raises:
        InputError: All faults in it, each with its line.
    """
    try:
        raw = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(f"{where}: not TOML: {error}") from error
    faults = Faults(where, Lines(text))
    made = _read(raw, faults)
    _judge(raw, made, faults, today)
    faults.check()
    return Settings(**made)


def _read(raw: Mapping[str, Any], faults: Faults) -> dict[str, Any]:
    known = ("pipeline", "devices", *_ARRAYS)
    made: dict[str, Any] = {}
    for name in raw:
        if name not in known:
            faults.add((name,), f"unknown table.{nearest(name, known)} Tables: {', '.join(known)}")
    head = raw.get("pipeline", {})
    if isinstance(head, Mapping):
        types = {field.name: field.type for field in msgspec.structs.fields(Settings)}
        for key, value in head.items():
            if key not in _HEAD:
                faults.add(("pipeline", key), f"unknown key.{nearest(key, _HEAD)} Keys: {', '.join(_HEAD)}")
                continue
            made[key] = _converted(value, types[key], ("pipeline", key), faults)
    else:
        faults.add(("pipeline",), "must be a table")
    devices = raw.get("devices")
    if isinstance(devices, Mapping):
        made["devices"] = {name: _table(value, Device, ("devices", name), faults) for name, value in devices.items()}
    for name, kind in _ARRAYS.items():
        tables = raw.get(name, [])
        if not isinstance(tables, list):
            faults.add((name,), f"must be an array of tables: [[{name}]]")
            continue
        made[name] = tuple(_table(value, kind, (name, number), faults) for number, value in enumerate(tables))
    return made


def _table(value: Any, kind: type, path: tuple[str | int, ...], faults: Faults) -> Any:
    if not isinstance(value, Mapping):
        faults.add(path, "must be a table")
        return None
    fields = {field.name: field for field in msgspec.structs.fields(kind)}
    unknown = [key for key in value if key not in fields]
    for key in unknown:
        faults.add((*path, key), f"unknown key.{nearest(key, fields)} Keys: {', '.join(fields)}")
    missing = [name for name, field in fields.items() if field.required and name not in value]
    if missing:
        faults.add(path, f"needs {' and '.join(missing)}")
    kept = {
        key: _converted(item, fields[key].type, (*path, key), faults) for key, item in value.items() if key in fields
    }
    return None if unknown or missing or None in kept.values() else kind(**kept)


def _converted(value: Any, kind: Any, path: tuple[str | int, ...], faults: Faults) -> Any:
    if kind == Excuse | None and isinstance(value, Mapping):
        return _table(value, Excuse, path, faults)
    if kind == Mapping[str, str] and isinstance(value, Mapping):
        read = {name: _converted(item, str, (*path, name), faults) for name, item in value.items()}
        return None if None in read.values() else read
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        faults.add(path, str(error))
        return None


def _judge(raw: Mapping[str, Any], made: Mapping[str, Any], faults: Faults, today: dt.date) -> None:
    """What the types cannot say, of every table that could be read."""
    tables = [table for name in _ARRAYS if isinstance(raw.get(name), list) for table in raw[name]]
    keys = [table["key"] for table in tables if isinstance(table, Mapping) and isinstance(table.get("key"), str)]
    devices: Mapping[str, Device | None] = made.get("devices") or Settings().devices
    for name in _ARRAYS:
        for number, work in enumerate(made.get(name, ())):
            for key, fault in _faults(work, devices, keys, today) if work is not None else ():
                faults.add((name, number, key), fault)
    for need in made.get("run_all") or ():
        for fault in beginning(need):
            faults.add(("pipeline", "run_all"), fault)
    for name, device in devices.items():
        if device is not None and device.concurrency is not None and device.concurrency < 1:
            faults.add(("devices", name, "concurrency"), "must be at least 1")


def _faults(
    work: Work, devices: Mapping[str, Device | None], keys: Sequence[str], today: dt.date
) -> Iterator[tuple[str, str]]:
    yield from (("key", fault) for fault in _key(work.key, keys))
    if work.device not in devices:
        yield "device", f"no device {work.device!r}.{nearest(work.device, devices)} Devices: {', '.join(devices)}"
    yield from (("needs", fault) for need in work.needs for fault in beginning(need))
    for key in work.depends_on:
        if key not in keys:
            yield "depends_on", f"no step {key!r}.{nearest(key, keys)} Steps: {', '.join(keys)}"
    if work.timeout_minutes < 1:
        yield "timeout_minutes", "must be at least 1"
    if not getattr(work, "command", "x").strip():
        yield "command", "must say something"
    yield from (("soft_fail", fault) for fault in _excused(work.soft_fail, today))
    if not isinstance(work, Check):
        yield from _sharding(work)
    if isinstance(work, TestWork):
        yield from _command(work.command)
        if "{shard}" in work.command and work.shards is None:
            yield "shards", "must say how many, for what cuts by {shard} is cut after planning"


def _key(key: str, keys: Sequence[str]) -> Iterator[str]:
    if not KEY.fullmatch(key) or len(key) > 80:
        yield f"{key!r}: at most 80 letters, digits, _, - and :"
    if UUID.fullmatch(key):
        yield f"{key!r} looks like a UUID"
    if key in {CHECKS, SUMMARY}:
        yield f"{key!r} is the key of a step that every pipeline has"
    if keys.count(key) > 1:
        yield f"{key!r} is used {keys.count(key)} times"


def beginning(need: str) -> Iterator[str]:
    """Why no path of a checkout begins like that."""
    path = need.removeprefix("!")
    if not path:
        yield f"{need!r}: every path begins like that; name a beginning"
    elif any(mark in path for mark in "*?["):
        yield f"{need!r}: a beginning of paths, no pattern: such as {re.split(r'[*?[]', path)[0] or 'src/'!r}"
    elif path.startswith(("/", "./", "../")):
        yield f"{need!r}: paths begin at the root of the checkout, without / and ./"


def _excused(excuse: Excuse | None, today: dt.date) -> Iterator[str]:
    if excuse is None:
        return
    if not (excuse.owner.strip() and excuse.reason.strip()):
        yield "needs an owner and a reason, neither of them empty"
    if excuse.until < today:
        yield f"ended on {excuse.until}; {excuse.owner} decides: mend it, or give it more time"


def _sharding(work: MatrixWork | TestWork) -> Iterator[tuple[str, str]]:
    if work.shards is not None and work.shard_minutes is not None:
        yield "shards", "shards and shard_minutes exclude each other"
    if work.shards is not None and not 1 <= work.shards <= JOBS_PER_BUILD:
        yield "shards", f"must be from 1 to {JOBS_PER_BUILD}"
    if work.shard_minutes is not None and not 0 < work.shard_minutes < float("inf"):
        yield "shard_minutes", "must be above 0"
    if work.max_shards < 1:
        yield "max_shards", "must be at least 1"


def _command(command: str) -> Iterator[tuple[str, str]]:
    try:
        command.format(**dict.fromkeys(FIELDS, ""))
    except (KeyError, IndexError, ValueError, AttributeError) as error:
        yield "command", f"{error}: the braces that it may have are {', '.join(sorted(FIELDS))}"
        return
    if "{files}" not in command and "{shard}" not in command:
        yield "command", "must name {files} or {shard}, or each shard would run everything"
