"""A lifeline: a socket pair over which nothing is ever sent. When one side dies, the other reads the end of it."""

import contextlib
import ctypes
import os
import select
import shutil
import signal
import socket
import sys
import threading
from collections.abc import Callable, Sequence

ORPHANED = 113
"""Exit code of a process that ended because its parent was gone; nobody is left to read it but a test."""

CHECK_MS = 1_000
"""A process that the parent forked holds a copy of the parent's end, so the parent's own death is looked for too."""


PR_SET_PDEATHSIG = 1


def wake_when_the_parent_dies() -> None:
    """Have Linux continue this process, should it be stopped, when its parent dies: a stopped watchdog sees nothing.

    SIGCONT does nothing to a process that runs. So it does not matter that the kernel sends it also when no more than
    the thread that started this process ends; and once awake, a process ends in order and removes what it must, which
    SIGKILL would not let it.
    """
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):  # a libc without it: then it ends once it is continued
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGCONT))


def watch(lifeline: socket.socket, belongings: Sequence[str], end_children: Callable[[], None]) -> threading.Thread:
    """Start the thread that ends this process when its parent is gone or closes the lifeline.

    Args:
        lifeline: This side's end.
        belongings: Files and folders that nobody else would remove then.
        end_children: Called first.
    """
    parent = os.getppid()
    wake_when_the_parent_dies()

    def wait() -> None:
        poll = select.poll()
        poll.register(lifeline, select.POLLIN)
        while not poll.poll(CHECK_MS) and os.getppid() == parent:
            pass
        end_children()
        for path in belongings:
            shutil.rmtree(path, ignore_errors=True)
        # Not sys.exit: other threads may be inside native code that never returns.
        os._exit(ORPHANED)

    thread = threading.Thread(target=wait, name="watchdog", daemon=True)
    thread.start()
    return thread
