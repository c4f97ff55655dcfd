"""What each worker was doing, in a file of its own: a process that dies cannot tell any more.

One line an event, written without buffering, so that what is last in the file is what was last in the worker.
"""

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

Phase = Literal["started", "setup", "call", "teardown", "finished"]
SUFFIX: Final = ".events.jsonl"
_write = os.write  # held here: a test that patches `os.write` patches its own, not the journal of its worker


@dataclass(frozen=True, slots=True)
class LastEvent:
    """The last that is known of a worker.

    Attributes:
        test: The test.
        phase: How far it had come; `finished` means that the worker died after it.
        pid: The worker's process.
    """

    test: str
    phase: Phase
    pid: int


class WorkerJournal:
    """Written by one worker."""

    def __init__(self, folder: Path, worker: str) -> None:
        self._descriptor = os.open(folder / f"{worker}{SUFFIX}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        self._pid = os.getpid()

    def note(self, test: str, phase: Phase) -> None:
        """Write one event; where that fails the tests go on, and a death is told without it."""
        line = json.dumps({"test": test, "phase": phase, "pid": self._pid}) + "\n"
        with suppress(OSError):
            _write(self._descriptor, line.encode())

    def close(self) -> None:
        """Nothing more comes."""
        os.close(self._descriptor)


def last_event(folder: Path, worker: str) -> LastEvent | None:
    """What a worker did last; None if it did nothing, or wrote to another machine's folder."""
    try:
        lines = (folder / f"{worker}{SUFFIX}").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    for line in reversed(lines):
        try:
            event: Mapping[str, object] = json.loads(line)
        except ValueError:  # torn by the death
            continue
        return LastEvent(str(event["test"]), event["phase"], int(str(event["pid"])))  # type: ignore[arg-type]
    return None
