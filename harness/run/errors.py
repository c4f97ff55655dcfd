"""What can stop a run, as opposed to what a run finds.

RunError
|- RunUsageError   the run was asked for in a way that cannot be done; nothing has been executed      (exit 2)
|- RunAbortedError      the run could not go on: no worker starts, the journal cannot be written           (exit 3)
`- ReportError     every verdict is in the journal, but a report could not be written                 (exit 3)

A signal is no error: see `Interrupted`.
"""

import signal
from pathlib import Path

from staticfire.harness.errors import InputError


class RunError(Exception):
    """Root of everything that stops a run."""

    exit_code = 3


class RunUsageError(RunError, InputError):
    """The run cannot be done as asked; the message says what to type instead."""

    exit_code = 2


class RunAbortedError(RunError):
    """The run could not go on; the verdicts reached so far are in the journal."""


class ReportError(RunError):
    """A report could not be written; the verdicts are in the journal."""

    def __init__(self, path: Path, error: OSError) -> None:
        super().__init__(f"cannot write the report {path}: {error.strerror or error}")
        self.path = path


class Interrupted(BaseException):
    """A signal asked the run to stop. Not an `Exception`, so that nothing on the way can swallow it."""

    def __init__(self, signum: int) -> None:
        super().__init__(signal.Signals(signum).name)
        self.signum = signum

    @property
    def exit_code(self) -> int:
        """The shell's convention: 130 for SIGINT, 143 for SIGTERM."""
        return 128 + self.signum
