"""Whose something is: sockets, threads and children belong to one process, and a fork of it gets none of them."""

import os
import threading
from contextlib import AbstractContextManager

from staticfire.engine.errors import EngineError


class Owner:
    """The process that made it.

    Attributes:
        pid: Its id.
    """

    def __init__(self) -> None:
        self.pid = os.getpid()

    def is_here(self) -> bool:
        """Whether this is that process, and not a fork of it."""
        return os.getpid() == self.pid

    def insist(self) -> None:
        """Refuse a fork, which would wait for ever for threads that it lacks and answers that its parent gets.

        Raises:
            EngineError: This is a fork.
        """
        if not self.is_here():
            raise EngineError(
                f"this engine belongs to process {self.pid}, which forked process {os.getpid()}: a fork cannot use it; "
                "make another LLM there"
            )


class OwnedLock:
    """A lock that may be taken again by the thread that holds it, and by no fork.

    Attributes:
        owner: Whose it is.
    """

    def __init__(self) -> None:
        self.owner = Owner()
        self._lock = threading.RLock()

    def here(self) -> AbstractContextManager[bool]:
        """What a `with` statement takes and releases.

        It is the lock itself: an interrupt between the lines of an `__enter__` or `__exit__` in Python would leave the
        lock taken for ever.

        Raises:
            EngineError: This is a fork.
        """
        self.owner.insist()
        return self._lock
