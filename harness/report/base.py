"""The contract of a report format: a record in, bytes out. Formats never touch the disk; `write.py` does."""

from typing import Protocol

from staticfire.harness.run.record import RunRecord


class ReportFormat(Protocol):
    """One format, as a module with these names.

    Attributes:
        NAME: As `--format` takes it.
        FILE: Name of the file it makes.
    """

    NAME: str
    FILE: str

    def render(self, record: RunRecord) -> bytes:
        """Return the whole file."""
        ...
