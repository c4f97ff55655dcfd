"""Signals that ask for the end, seen by the run's loop when it looks, never in the middle of a write."""

import os
import signal
import threading
from types import FrameType
from typing import Any, Self

from staticfire.harness.run.errors import Interrupted

STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class StopSignals:
    """While entered, the stopping signals are noted instead of acted upon; `fileno()` becomes readable at once.

    Outside the main thread Python allows no handlers, and nothing is noted.
    """

    def __init__(self) -> None:
        self._received: int | None = None
        self._read = self._write = -1
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> Self:
        self._read, self._write = os.pipe()
        os.set_blocking(self._write, False)
        if threading.current_thread() is threading.main_thread():
            for number in STOPPING:
                # nohup means: go on after the terminal is gone
                if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
                    self._previous[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        os.close(self._read)
        os.close(self._write)

    def fileno(self) -> int:
        """A descriptor to wait on."""
        return self._read

    def check(self) -> None:
        """Raise what has come.

        Raises:
            Interrupted: A stopping signal has come.
        """
        if self._received is not None:
            raise Interrupted(self._received)

    def _note(self, number: int, _: FrameType | None) -> None:
        if self._received is None:
            self._received = number
            os.write(self._write, b"\0")
