"""A run from start to end: folder, journal, workers, record. Prints nothing; the command line does."""

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from staticfire.harness.matrix.cell import Cell
from staticfire.harness.run import journal as journals
from staticfire.harness.run.errors import RunAbortedError, RunUsageError
from staticfire.harness.run.folder import RunFolder
from staticfire.harness.run.identity import Identity
from staticfire.harness.run.journal import Header, Journal
from staticfire.harness.run.record import RunRecord
from staticfire.harness.run.result import CellResult
from staticfire.harness.run.signals import StopSignals
from staticfire.harness.run.supervisor import Listener, Settings, Supervisor


class RunListener(Listener, Protocol):
    """Is told of the run as a whole, too."""

    def opened(self, todo: int, done: Sequence[CellResult], set_aside: Path | None) -> None:
        """The journal is open: `todo` cells to run, verdicts of an earlier sitting, where an earlier run went."""


@dataclass(frozen=True, kw_only=True)
class RunRequest:
    """What to run.

    Attributes:
        file: The matrix as the user named it.
        identity: Identity of the matrix and the code.
        cells: The selected cells, in the matrix's order.
        everything: Every cell of the matrix, in order; a resumed run takes its selection from the journal.
        selective: The user chose cells, so that a resumed journal must hold the same choice.
        out: Folder to write to.
        resume: Go on with the journal in it.
        reports: Names of the report files that an earlier run may have left there.
        settings: How to run.
    """

    file: str
    identity: Identity
    cells: Sequence[Cell]
    everything: Sequence[Cell]
    selective: bool
    out: Path
    resume: bool
    reports: Sequence[str]
    settings: Settings


def run(request: RunRequest, listener: RunListener, publish: Callable[[RunRecord], None]) -> RunRecord:
    """Run the cells that have no verdict yet, then `publish` while the folder is still ours.

    Raises:
        RunUsageError: The folder cannot be used, or its journal cannot be resumed; nothing was executed.
        RunAbortedError: The run could not go on.
        Interrupted: A signal asked for the end; the journal is intact and no worker is left.
    """
    with StopSignals() as signals, RunFolder(request.out) as folder:
        sitting = _resume(request, folder) if request.resume and folder.journal.exists() else None
        sitting = sitting or _begin(request, folder)
        started = time.monotonic()
        results = {result.id: result for result in sitting.done}
        todo = [cell for cell in sitting.cells if cell.id not in results]
        listener.opened(len(todo), sitting.done, sitting.set_aside)
        with sitting.journal as journal:

            def record(result: CellResult) -> None:
                _append(journal, folder.journal, result)
                results[result.id] = result

            Supervisor(request.settings, record, listener, signals).run(todo)
        outcome = RunRecord(
            file=request.file,
            identity=request.identity,
            started=sitting.header.started,
            seconds=time.monotonic() - started,
            selected=len(sitting.cells),
            axes=list(dict.fromkeys(axis for cell in sitting.cells for axis in cell.axes)),
            results=[results[cell.id] for cell in sitting.cells if cell.id in results],
        )
        publish(outcome)
        return outcome


@dataclass(frozen=True)
class _Sitting:
    header: Header
    journal: AbstractContextManager[Journal]
    cells: Sequence[Cell]
    done: Sequence[CellResult] = ()
    set_aside: Path | None = None


def _begin(request: RunRequest, folder: RunFolder) -> _Sitting:
    header = Header(
        staticfire_journal=journals.VERSION,
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        identity=request.identity,
        cells=[cell.id for cell in request.cells],
    )
    try:
        set_aside = folder.set_aside(request.reports)
        journal = Journal.create(folder.journal, header)
    except OSError as error:
        raise RunUsageError(f"--out {folder.path}: {error.strerror or error}: {error.filename}") from error
    return _Sitting(header, journal, request.cells, set_aside=set_aside)


def _resume(request: RunRequest, folder: RunFolder) -> _Sitting:
    try:
        contents = journals.read(folder.journal)
    except OSError as error:
        raise RunUsageError(
            f"{folder.journal}: cannot be read: {error.strerror or error}; {journals.AFRESH}"
        ) from error
    header = contents.header
    if differences := header.identity.differences(request.identity):
        changed = "; ".join(differences)
        raise RunUsageError(f"{folder.journal} belongs to another matrix or version ({changed}); {journals.AFRESH}")
    if request.selective and [cell.id for cell in request.cells] != list(header.cells):
        raise RunUsageError(
            f"{folder.journal} is of another selection of {len(header.cells)} cells: with --resume leave --cell and "
            f"--select out, or {journals.AFRESH}"
        )
    known = {cell.id: cell for cell in request.everything}
    strangers = {*header.cells, *(result.id for result in contents.results)} - known.keys()
    if strangers:
        raise RunUsageError(f"{folder.journal} names the unknown cell {min(strangers)!r}; {journals.AFRESH}")
    cells = [known[name] for name in header.cells]
    return _Sitting(header, Journal.reopen(folder.journal, contents), cells, contents.results)


def _append(journal: Journal, path: Path, result: CellResult) -> None:
    try:
        journal.append(result)
    except OSError as error:
        raise RunAbortedError(
            f"cannot write the journal {path}: {error.strerror or error}; the verdicts before {result.id} are in it, "
            "run again with --resume when that is mended"
        ) from error
