"""Puts reports on disk: each whole or not at all."""

from collections.abc import Iterable
from pathlib import Path

from staticfire.harness.files import write_whole
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
