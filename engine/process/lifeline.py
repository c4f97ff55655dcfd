"""A lifeline: a socket pair over which nothing is ever sent. When one side dies, the other reads the end of it."""

import os
import select
import shutil
import socket
import threading
from collections.abc import Callable, Sequence

ORPHANED = 113
"""Exit code of a process that ended because its parent was gone; nobody is left to read it but a test."""

CHECK_MS = 1_000
"""A process that the parent forked holds a copy of the parent's end, so the parent's own death is looked for too."""


def watch(lifeline: socket.socket, belongings: Sequence[str], end_children: Callable[[], None]) -> threading.Thread:
    """Start the thread that ends this process when its parent is gone or closes the lifeline.

    Args:
        lifeline: This side's end.
        belongings: Files and folders that nobody else would remove then.
        end_children: Called first.
    """
    parent = os.getppid()

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
