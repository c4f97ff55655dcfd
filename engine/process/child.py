"""One child process as its parent sees it: started, listened to, ended, and never left behind.

A child is a fresh interpreter, not a fork: the parent may hold threads and torch. It does not import the user's
`__main__` again, as `multiprocessing` would.
"""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Mapping, Sequence

from staticfire.engine.process.exits import describe_exit
from staticfire.engine.process.frames import Channel
from staticfire.engine.process.owner import Owner

TAIL_LINES = 20
LINE_BYTES = 4_096
KILL_PATIENCE_S = 10.0
"""For the kernel to end a killed process; one that sleeps in the kernel is left to it."""

POLL_S = 0.002

# The child sees modules where its parent sees them, whatever way the parent's path was made.
BOOT = (
    "import os, sys; sys.path[:] = os.environ.pop('STATICFIRE_CHILD_PATH').split(os.pathsep); "
    "from staticfire.engine.process.boot import main; main()"
)

_lock = threading.Lock()
_live: "weakref.WeakSet[Child]" = weakref.WeakSet()


class Child:
    """A process that ends when it should, and at the latest when its parent does.

    Attributes:
        name: What the user is told it is, such as `engine core 0`.
        pid: Process id.
        channel: Frames to and from the child.
    """

    def __init__(
        self,
        name: str,
        entry: str,
        payload: bytes = b"",
        *,
        environment: Mapping[str, str] | None = None,
        belongings: Sequence[str] = (),
        own_group: bool = True,
    ) -> None:
        """Start it.

        Args:
            name: What it is called in messages.
            entry: `package.module:function`, called with the payload and the channel (`boot.Entry`).
            payload: Handed to the entry.
            environment: Variables added to this process's own.
            belongings: Folders that the child removes if this process dies first.
            own_group: Whether it leads a process group; killing it then kills all that it started with False.
        """
        self.name = name
        self._own_group = own_group
        self._killed = False
        self._code: int | None = None
        self._owner = Owner()
        lifeline, theirs = socket.socketpair()
        channel, their_channel = socket.socketpair()
        with theirs, their_channel:
            task = {
                "name": name,
                "entry": entry,
                "lifeline": theirs.fileno(),
                "channel": their_channel.fileno(),
                "belongings": list(belongings),
            }
            try:
                self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and code
                    [sys.executable, "-c", BOOT, json.dumps(task)],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    env=_environment(environment or {}),
                    pass_fds=(theirs.fileno(), their_channel.fileno()),
                    # Ctrl-C in the terminal reaches the front end alone, which decides
                    start_new_session=own_group,
                )
            except BaseException:
                lifeline.close()
                channel.close()
                raise
        self.pid = self._process.pid
        self.channel = Channel(channel)
        self._lifeline = lifeline
        self._lines: deque[str] = deque(maxlen=TAIL_LINES)
        self._reader = threading.Thread(target=self._keep_lines, name=f"stderr of {name}", daemon=True)
        self._reader.start()
        with _lock:
            _live.add(self)
        try:
            self.channel.send(payload)
        except EOFError:
            pass  # it is dead, which its exit code will tell as well
        except BaseException:
            self.kill()
            raise

    def fileno(self) -> int:
        """Descriptor that becomes readable when the child has died, for pollers."""
        return self._lifeline.fileno()

    def exit_code(self, patience_s: float = 0.0) -> int | None:
        """Exit code, minus the signal if one ended it; None if it still lives after `patience_s` seconds.

        It is left a zombie until `kill`, so that its pid and its group are nobody else's when they are signalled.
        """
        deadline = time.monotonic() + patience_s
        while self._code is None:
            ended = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if ended is not None:
                self._code = ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
            elif time.monotonic() >= deadline:
                break
            else:
                time.sleep(POLL_S)
        return self._code

    def describe(self) -> str:
        """Name, pid, how it ended: `engine core 0 (pid 71): killed by SIGKILL`."""
        return f"{self.name} (pid {self.pid}): {describe_exit(self.exit_code())}"

    def tail(self, patience_s: float = 1.0) -> str:
        """The last lines it printed; of a dead child, all that came before its end."""
        if self.exit_code() is not None:
            self._reader.join(patience_s)
        return "\n".join(self._lines)

    def stop(self, patience_s: float = 0.5) -> None:
        """End it: close the lifeline, then SIGTERM, then SIGKILL, each with its patience. Repeated calls do nothing."""
        if self._killed or not self._owner.is_here():
            return
        self.channel.close()
        with contextlib.suppress(OSError):  # it is dead
            self._lifeline.shutdown(socket.SHUT_RDWR)
        if self.exit_code(patience_s) is None:
            self._signal(signal.SIGTERM)
            self.exit_code(patience_s)
        self.kill()

    def kill(self) -> None:
        """End it and its group now, and wait for it. A second call does nothing."""
        if self._killed or not self._owner.is_here():
            return
        self._killed = True
        self._signal(signal.SIGKILL)
        self.exit_code(KILL_PATIENCE_S)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(0)
        self.channel.close()
        self._lifeline.close()
        with _lock:
            _live.discard(self)

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):  # all gone; macOS says EPERM of a zombie
            if self._own_group:
                os.killpg(self.pid, number)
            else:
                os.kill(self.pid, number)

    def _keep_lines(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as stream:
            while line := stream.readline(LINE_BYTES):
                self._lines.append(line.decode("utf-8", "replace").rstrip())


def kill_all() -> None:
    """Kill every child of this process that is still alive."""
    with _lock:
        children = list(_live)
    for child in children:
        child.kill()


def _environment(added: Mapping[str, str]) -> dict[str, str]:
    path = os.pathsep.join(entry for entry in sys.path if entry)
    return {**os.environ, **added, "PYTHONSAFEPATH": "1", "STATICFIRE_CHILD_PATH": path}
