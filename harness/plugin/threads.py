"""Threads of an engine in one of several xdist workers: its share of the cores, unless somebody has said how many.

torch takes every core for itself, and its threads wait for work by spinning: on a busy machine of two cores that took
sixteen times the processor time of one thread. `staticfire run` shares the cores out in the same way.
"""

import os
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from typing import Final

from staticfire.engine.process.cores import available_cores
from staticfire.harness.run.environment import threads_per_worker

WORKERS: Final = "PYTEST_XDIST_WORKER_COUNT"
SAID: Final = "OMP_NUM_THREADS"


@contextmanager
def engine_threads(count: int | None = None) -> Generator[None]:
    """Hold the number of torch's threads, here and in processes that are started: `count`, else this worker's share."""
    with ExitStack() as stack:
        if count is None:
            workers = int(os.environ.get(WORKERS, "1"))
            if workers > 1 and SAID not in os.environ:
                count = threads_per_worker(workers, available_cores())
                # read when torch is imported, which may be now, and by every process that is started
                stack.enter_context(_environment({SAID: str(count), "OMP_WAIT_POLICY": "PASSIVE"}))
        if count is not None:
            stack.enter_context(_torch_threads(count))
        yield


@contextmanager
def _environment(wanted: dict[str, str]) -> Generator[None]:
    added = {name: value for name, value in wanted.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)


@contextmanager
def _torch_threads(count: int) -> Generator[None]:
    import torch  # noqa: PLC0415 -- loaded by the engine anyway

    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
