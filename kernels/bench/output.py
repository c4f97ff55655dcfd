"""Where the table goes, and what becomes of it when it cannot go there."""

import os
import sys


class UnwritableError(Exception):
    """Standard output takes no more; the text says why, and is empty where its reader has had enough."""


def say(line: str) -> None:
    """Print a line at once.

    Args:
        line: Of the table.

    Raises:
        UnwritableError: It cannot be written; nothing that is still held back will be tried again.
    """
    if sys.stdout is None:
        raise UnwritableError("standard output is closed: there is nowhere to write")
    try:
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
    except OSError as error:
        _discard()
        enough = isinstance(error, BrokenPipeError)
        raise UnwritableError("" if enough else f"standard output cannot be written: {error.strerror}") from error


def _discard() -> None:
    """Lead the descriptor nowhere: Python flushes once more when it ends, and would fail again."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
