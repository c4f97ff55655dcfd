"""Puts reports on disk: each whole or not at all."""

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from staticfire.harness.report.base import ReportFormat
from staticfire.harness.run.errors import ReportError
from staticfire.harness.run.record import RunRecord


def write_reports(record: RunRecord, folder: Path, formats: Iterable[ReportFormat]) -> list[Path]:
    """Write a report in each of the formats.

    Returns:
        The files, in the order of the formats.

    Raises:
        ReportError: One cannot be written; an earlier file of that name is as it was.
    """
    written = []
    for form in formats:
        path = folder / form.FILE
        try:
            write_whole(path, form.render(record))
        except OSError as error:
            raise ReportError(path, error) from error
        written.append(path)
    return written


def write_whole(path: Path, content: bytes) -> None:
    """Replace `path` by `content`: a reader sees the former file or the new one, never a part.

    Raises:
        OSError: It cannot be written; nothing is left behind.
    """
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
