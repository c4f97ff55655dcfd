"""A set-up for all workers: one start, one stop, and the stop after the last user.

The first worker to ask starts it and leaves the value, as JSON, for the others. Every worker may ask until its session
ends, so the last one that has asked waits for the sessions of the others before it stops anything; the controller takes
out a worker that died.
"""

import fcntl
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Self

import pytest

FILE: Final = "shared.json"
RUNNING: Final = "running"
HOLDERS: Final = "holders"
POLL_SECONDS: Final = 0.05
VALUES: Final = "values"


class SharedSetups:
    """Those of one process: a worker, or the only process of a serial run.

    Attributes:
        folder: Where the processes of a run leave the values for each other.
    """

    def __init__(self, folder: Path, worker: str) -> None:
        self.folder = folder
        self._worker = worker
        self._stops: dict[str, Callable[[Any], None]] = {}
        self._own_folder = False
        with _locked(folder) as state:
            state[RUNNING].append(worker)

    @classmethod
    def alone(cls) -> Self:
        """Of a process that shares with nobody; the folder goes with it."""
        made = cls(Path(tempfile.mkdtemp(prefix="staticfire-shared-")), "main")
        made._own_folder = True
        return made

    def get(self, name: str, start: Callable[[], Any], stop: Callable[[Any], None]) -> Any:
        """The value of a set-up, started if nobody has.

        Args:
            name: The same in every worker.
            start: Starts it; what it returns must be JSON, for other processes get a copy.
            stop: Stops it, given that value; called in whichever worker ends last.

        Raises:
            TypeError: The value is no JSON.
        """
        self._stops[name] = stop
        with _locked(self.folder) as state:
            if name not in state[VALUES]:
                value = start()
                try:
                    state[VALUES][name] = json.loads(json.dumps(value))
                except (TypeError, ValueError) as error:
                    stop(value)
                    raise TypeError(
                        f"shared set-up {name!r}: other processes cannot be given {value!r}: {error}"
                    ) from error
            if self._worker not in state[HOLDERS]:
                state[HOLDERS].append(self._worker)
            return state[VALUES][name]

    def finish(self) -> None:
        """Ask for nothing any more; the last process that has asked waits for the others, and stops everything."""
        try:
            self._finish()
        finally:
            if self._own_folder:
                shutil.rmtree(self.folder, ignore_errors=True)

    def _finish(self) -> None:
        parent = os.getppid()
        leave(self.folder, self._worker)
        while self._stops:
            with _locked(self.folder) as state:
                if state[HOLDERS]:
                    return
                if not state[RUNNING] or os.getppid() != parent:  # without a controller nobody is taken out any more
                    for name in [name for name in state[VALUES] if name in self._stops]:
                        self._stops[name](state[VALUES].pop(name))
                    return
            time.sleep(POLL_SECONDS)


class SharedPlugin:
    """Ends the set-ups with the session."""

    def __init__(self, setups: SharedSetups) -> None:
        self.setups = setups

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self) -> Generator[None, Any, Any]:
        """After every fixture of the session."""
        answer = yield
        self.setups.finish()
        return answer


def leave(folder: Path, worker: str) -> None:
    """A worker has ended, or died: it asks for nothing any more."""
    with _locked(folder) as state:
        for names in (state[RUNNING], state[HOLDERS]):
            if worker in names:
                names.remove(worker)


def left(folder: Path) -> list[str]:
    """What was started and never stopped."""
    if not (folder / FILE).exists():
        return []
    with _locked(folder) as state:
        return list(state[VALUES])


@contextmanager
def _locked(folder: Path) -> Iterator[dict[str, Any]]:
    """Hold the state; it is written back when all went well, and when not."""
    with (folder / f"{FILE}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        file = folder / FILE
        state: dict[str, Any] = {RUNNING: [], HOLDERS: [], VALUES: {}}
        if file.exists():
            state = json.loads(file.read_text(encoding="utf-8"))
        try:
            yield state
        finally:
            scratch = folder / f".{FILE}"
            scratch.write_text(json.dumps(state), encoding="utf-8")
            scratch.replace(file)
