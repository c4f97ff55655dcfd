"""What each worker was doing, in a file of its own: a process that dies cannot tell any more.

One line an event, written without buffering, so that what is last in the file is what was last in the worker.
"""

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

Phase = Literal["collection", "collected", "started", "call", "teardown", "finished"]
SUFFIX: Final = ".events.jsonl"
_write = os.write  # held here: a test that patches `os.write` patches its own, not the journal of its worker


@dataclass(frozen=True, slots=True)
class LastEvent:
    """The last that is known of a worker.

    Attributes:
        test: The test; in `collection` the file, and empty once all are `collected`.
        phase: How far it had come; `finished` means that the worker died after it.
        pid: The worker's process.
        told: What the worker said of the test when it began.
    """

    test: str
    phase: Phase
    pid: int
    told: Mapping[str, Any] = field(default_factory=dict)


class WorkerJournal:
    """Written by one worker."""

    def __init__(self, folder: Path, worker: str) -> None:
        self._descriptor = os.open(folder / f"{worker}{SUFFIX}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        self._pid = os.getpid()

    def note(self, test: str, phase: Phase, told: Mapping[str, Any] | None = None) -> None:
        """Write one event; where that fails the tests go on, and a death is told without it."""
        more = {"told": told} if told else {}
        line = json.dumps({"test": test, "phase": phase, "pid": self._pid, **more}) + "\n"
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
    events: list[Mapping[str, Any]] = []
    for line in lines:
        with suppress(ValueError):  # torn by the death
            events.append(json.loads(line))
    if not events:
        return None
    last = events[-1]
    told = [one["told"] for one in events if one["test"] == last["test"] and "told" in one]
    return LastEvent(last["test"], last["phase"], last["pid"], told[-1] if told else {})
