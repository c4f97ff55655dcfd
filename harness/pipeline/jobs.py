"""The jobs of a pipeline as plain values: every cell and every file of tests in exactly one of them."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal

from staticfire.harness.errors import InputError
from staticfire.harness.matrix import load
from staticfire.harness.pipeline.settings import Check, MatrixWork, Settings, TestWork, Work
from staticfire.harness.shard import durations
from staticfire.harness.shard.split import Item, Shard, count_for, split

Phase = Literal["check", "matrix", "tests"]
SKIPPED_FOLDERS = frozenset({"__pycache__", "node_modules"})


@dataclass(frozen=True, slots=True)
class Job:
    """One job.

    Attributes:
        key: Of its step.
        label: Shown.
        phase: Checks come before everything else.
        work: What it is a part of.
        commands: Set-up, then the command itself; plain, to be wrapped by whoever writes a pipeline.
        ids: Cells or files of tests; empty for a check.
        seconds: Expected; None where nothing is.
        predicted: How many of its ids have never been measured.
        shard: `(number, of how many)`, from 1.
        needs: Beginnings of paths a change of which selects it; empty: it always runs.
    """

    key: str
    label: str
    phase: Phase
    work: Work
    commands: tuple[str, ...]
    ids: tuple[str, ...] = ()
    seconds: float | None = None
    predicted: int = 0
    shard: tuple[int, int] = (1, 1)
    needs: tuple[str, ...] = ()


def plan(settings: Settings, root: Path) -> tuple[Job, ...]:
    """Every job, checks first.

    Args:
        settings: Of the project.
        root: Of the checkout; paths in the settings are relative to it.

    Raises:
        InputError: A matrix, a folder of tests or timings that cannot be read, or a suite without tests.
    """
    recorded = durations.cases(root / path for path in settings.timings)
    names, files = durations.by_name(recorded), durations.by_file(recorded)
    jobs = [_check(check, settings) for check in settings.check]
    faults: list[str] = []
    works: tuple[MatrixWork | TestWork, ...] = (*settings.matrix, *settings.tests)
    for work in works:
        try:
            if isinstance(work, MatrixWork):
                jobs += _matrix(work, settings, names, root)
            else:
                jobs += _tests(work, settings, files, root)
        except InputError as error:
            faults.append(str(error))
    if faults:
        raise InputError("\n".join(faults))
    return tuple(jobs)


def _check(check: Check, settings: Settings) -> Job:
    return Job(check.key, check.label or check.key, "check", check, _script(settings, check.command), needs=check.needs)


def _matrix(work: MatrixWork, settings: Settings, names: Mapping[str, float], root: Path) -> list[Job]:
    file = str(root / work.file) if (root / work.file).is_file() else work.file
    matrix = load(file)
    conditions = [_condition(entry, work) for entry in work.select]
    cells = matrix.select(conditions) if conditions else matrix.cells()
    # A cell that is refused loads no model.
    items = [Item(cell.id, cell.model if cell.verdict == "valid" else "") for cell in cells]
    shards = _cut(work, items, names)
    jobs = []
    for number, shard in enumerate(shards, 1):
        key = _key(work, number, len(shards))
        chosen = shlex.join([word for name in shard.ids for word in ("--cell", name)])
        options = f" {work.options}" if work.options else ""
        out = shlex.quote(report_folder(work, number, settings))
        command = f"{settings.program} run {shlex.quote(work.file)} {chosen} --out {out}{options}"
        own = (work.file,) if (root / work.file).is_file() else ()
        jobs.append(_shard(work, "matrix", key, shard, (number, len(shards)), _script(settings, command), own))
    return jobs


def _tests(work: TestWork, settings: Settings, files: Mapping[str, float], root: Path) -> list[Job]:
    groups = _suite(work, root)
    own = work.path if (root / work.path).is_file() else f"{work.path.rstrip('/')}/"
    if "{shard}" in work.command:
        # Cut by test, by the plugin and in each job alike; here nothing is known but their number.
        count = work.shards or 1
        whole = Shard((work.path,), 0.0, 1)
        return [_test_job(work, number, count, whole, settings, own) for number in range(1, count + 1)]
    seconds = {
        name: sum(files[file] for file in members if file in files)
        for name, members in groups.items()
        if any(file in files for file in members)
    }
    shards = _cut(work, [Item(name) for name in groups], seconds)
    return [_test_job(work, number, len(shards), shard, settings, own) for number, shard in enumerate(shards, 1)]


def _test_job(work: TestWork, number: int, count: int, shard: Shard, settings: Settings, own: str) -> Job:
    key = _key(work, number, count)
    command = work.command.format(
        files=shlex.join(shard.ids),
        junit=shlex.quote(f"{report_folder(work, number, settings)}/junit.xml"),
        key=shlex.quote(key),
        shard=f"{number}/{count}",
    )
    return _shard(work, "tests", key, shard, (number, count), _script(settings, command), (own,))


def _suite(work: TestWork, root: Path) -> dict[str, list[str]]:
    """What is handed to pytest -> the files of tests in it."""
    base = root / work.path
    if not base.exists():
        raise InputError(f"tests {work.key!r}: {work.path}: no such file or folder.")
    found = [base] if base.is_file() else sorted(_files(base, work.patterns))
    found = [path for path in found if not path.relative_to(root).as_posix().startswith(work.exclude)]
    if not found:
        raise InputError(f"tests {work.key!r}: {work.path}: no file is named {' or '.join(work.patterns)}.")
    groups: dict[str, list[str]] = {}
    for path in found:
        name = path.relative_to(root).as_posix()
        inside = path.relative_to(base).parts if base.is_dir() else ()
        coarse = len(inside) > work.depth > 0
        group = PurePosixPath(work.path, *inside[: work.depth]).as_posix() if coarse else name
        groups.setdefault(group, []).append(name)
    return groups


def _files(base: Path, patterns: Sequence[str]) -> set[Path]:
    found = {path for pattern in patterns for path in base.rglob(pattern) if path.is_file()}
    return {
        path
        for path in found
        if not any(part in SKIPPED_FOLDERS or part.startswith(".") for part in path.relative_to(base).parts)
    }


def _cut(work: MatrixWork | TestWork, items: Sequence[Item], known: Mapping[str, float]) -> list[Shard]:
    if work.shard_minutes is not None:
        count = count_for(items, work.shard_minutes, work.max_shards, known)
    else:
        count = work.shards or 1
    # More shards than there is work for would have nothing to run, and pytest fails when it has nothing to run.
    return [shard for shard in split(items, count, known) if shard.ids]


def _shard(
    work: MatrixWork | TestWork,
    phase: Phase,
    key: str,
    shard: Shard,
    place: tuple[int, int],
    commands: tuple[str, ...],
    own: tuple[str, ...],
) -> Job:
    label = work.label or work.key
    shown = label if place[1] == 1 else f"{label} {place[0]}/{place[1]}"
    needs = tuple(dict.fromkeys((*work.needs, *own))) if work.needs else ()
    seconds = shard.seconds or None
    return Job(key, shown, phase, work, commands, shard.ids, seconds, shard.predicted, place, needs)


def report_folder(work: Work, number: int, settings: Settings) -> str:
    """Where a shard writes its reports: beside those of the other shards, and of nothing else."""
    return f"{settings.report}/{work.key}/{number}"


def _key(work: Work, number: int, count: int) -> str:
    return work.key if count == 1 else f"{work.key}-{number}"


def _script(settings: Settings, command: str) -> tuple[str, ...]:
    return (settings.setup, command) if settings.setup else (command,)


def _condition(entry: str, work: MatrixWork) -> tuple[str, str]:
    axis, equals, value = entry.partition("=")
    if not (axis and equals and value):
        raise InputError(f"matrix {work.key!r}: select {entry!r}: must be AXIS=VALUE, such as block_size=32.")
    return axis, value
