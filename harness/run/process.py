"""One worker process as the runner sees it: started, spoken to, watched, ended."""

import contextlib
import os
import selectors
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Mapping
from typing import NamedTuple

from staticfire.harness.matrix.cell import Cell
from staticfire.harness.run.wire import Execute, Setup, ToWorker, encode

TAIL_BYTES = 8_192
CHUNK = 65_536
MAX_CHUNKS = 16
"""At most 1 MiB a call, so that one worker that prints without end cannot keep the runner from the others."""
PREDECESSORS = 3
KILL_PATIENCE_SECONDS = 10.0
"""For the kernel to end a killed process; one that sleeps in the kernel is left to it."""


class Running(NamedTuple):
    """A cell that a worker has begun. Times are `time.monotonic()`."""

    cell: Cell
    since: float


class WorkerProcess:
    """A spawned worker.

    Attributes:
        number: Its place, 1 to the number of workers; a replacement gets its predecessor's.
        pid: Process id, which is the process group's id too.
        running: The cell it is judging, None while it is idle or starting.
        ready: It has imported the job.
        begun: It has taken the cell that it was sent.
        deadline: When what it does now counts as a hang.
        overdue: The deadline has passed, and why that is a fault; it has been asked for its stacks.
        ran: Ids of the cells it finished last: a dead worker's last cell can be a victim of an earlier one.
    """

    def __init__(
        self,
        number: int,
        setup: Setup,
        environment: Mapping[str, str],
        deadline: float,
        selector: selectors.BaseSelector,
    ) -> None:
        read_end, write_end = os.pipe()
        try:
            self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
                [sys.executable, "-m", "staticfire.harness.run.worker", str(write_end)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=dict(environment),
                pass_fds=(write_end,),
                # Ctrl-C in the terminal reaches the runner alone, which decides
                start_new_session=True,
                bufsize=0,
            )
        except BaseException:
            os.close(read_end)
            raise
        finally:
            os.close(write_end)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._stdin, self._stdout = self._process.stdin, self._process.stdout
        self._results = read_end
        os.set_blocking(read_end, False)
        os.set_blocking(self._stdout.fileno(), False)
        self._selector = selector
        for stream in (self._results, self._stdout.fileno()):
            selector.register(stream, selectors.EVENT_READ, self)
        self._partial = b""
        self._tail: deque[bytes] = deque()
        self.number = number
        self.pid = self._process.pid
        self.running: Running | None = None
        self.ready = False
        self.begun = False
        self.deadline = deadline
        self.overdue: str | None = None
        self._killed = False
        self.ran: deque[str] = deque(maxlen=PREDECESSORS)
        self._send(setup)

    def execute(self, cell: Cell, now: float, limit: float) -> None:
        """Hand it a cell; it must be ready and idle."""
        assert self.ready, self.number
        assert self.running is None, self.running
        self.running = Running(cell, now)
        self.begun = False
        self.deadline = now + limit
        self._tail.clear()
        self._send(Execute(cell=cell))

    def finished(self) -> Cell:
        """It has sent the verdict of its cell: idle again."""
        assert self.running is not None
        cell = self.running.cell
        self.running = None
        self.ran.append(cell.id)
        return cell

    def read(self) -> tuple[list[bytes], bool]:
        """Return the whole lines that have come, and whether the worker closed its end."""
        self._read_text()
        data, ended = _drain(self._results)
        if ended:
            self._unwatch(self._results)
        *lines, self._partial = (self._partial + data).split(b"\n")
        return lines, ended

    def tail(self) -> str:
        """The last of what it printed since its cell began."""
        self._read_text()
        return b"".join(self._tail)[-TAIL_BYTES:].decode("utf-8", "replace").strip()

    def dump_stacks(self, why: str) -> None:
        """Ask for the stacks of its threads, which come as text. What it says afterwards counts no more."""
        self.overdue = why
        os.kill(self.pid, signal.SIGUSR1)

    def exit_code(self, patience: float = 0.0) -> int | None:
        """Exit code, minus the signal if one ended it; None if it lives on after `patience` seconds."""
        try:
            return self._process.wait(patience)
        except subprocess.TimeoutExpired:
            return None

    def kill(self) -> None:
        """End it and all it started, and wait for it. A second call does nothing."""
        if self._killed:
            return
        self._killed = True
        with contextlib.suppress(ProcessLookupError, PermissionError):  # all gone; macOS says EPERM of a zombie
            os.killpg(self.pid, signal.SIGKILL)
        self.exit_code(KILL_PATIENCE_SECONDS)

    def close(self) -> None:
        """Close the pipes."""
        self._unwatch(self._results)
        self._unwatch(self._stdout.fileno())
        self._stdin.close()
        self._stdout.close()
        os.close(self._results)

    def _send(self, message: ToWorker) -> None:
        with contextlib.suppress(BrokenPipeError):  # it is dead, which its outputs will tell as well
            self._stdin.write(encode(message))

    def _read_text(self) -> None:
        data, ended = _drain(self._stdout.fileno())
        if ended:
            self._unwatch(self._stdout.fileno())
        if data:
            self._tail.append(data)
            while sum(map(len, self._tail)) - len(self._tail[0]) > TAIL_BYTES:
                self._tail.popleft()

    def _unwatch(self, descriptor: int) -> None:
        if descriptor in self._selector.get_map():
            self._selector.unregister(descriptor)


def _drain(descriptor: int) -> tuple[bytes, bool]:
    """Read what is there without waiting, within reason; True at the end of the stream."""
    parts: list[bytes] = []
    for _ in range(MAX_CHUNKS):
        try:
            data = os.read(descriptor, CHUNK)
        except BlockingIOError:
            return b"".join(parts), False
        if not data:
            return b"".join(parts), True
        parts.append(data)
    return b"".join(parts), False


def describe_exit(code: int) -> str:
    """`killed by SIGKILL` or `exit code 3`."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"
