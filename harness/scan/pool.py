"""Processes that read files."""

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import parent_process
from multiprocessing.connection import wait
from multiprocessing.context import BaseContext
from typing import Any

from staticfire.harness import isolation
from staticfire.harness.errors import InputError


@contextmanager
def readers(
    what: object, processes: int, context: BaseContext, start: Callable[..., None] | None = None, *args: Any
) -> Iterator[ProcessPoolExecutor]:
    """Start processes that end with this one, however it ends.

    Args:
        what: What they read, for the message.
        processes: How many.
        context: How they are started.
        start: Called in each of them first.
        *args: Its arguments.

    Raises:
        InputError: One of them died.
    """
    try:
        with isolation.safe_path(), ProcessPoolExecutor(processes, context, _start, (start, args)) as pool:
            yield pool
    except BrokenProcessPool as error:
        raise InputError(f"{what}: a process that read it ended early, as it does when memory runs out.") from error


def _start(start: Callable[..., None] | None, args: tuple[Any, ...]) -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if start is not None:
        start(*args)


def _end_with_parent() -> None:
    """Wait for the process that this one reads for: the pool's pipes do not tell, for every reader holds both ends."""
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
