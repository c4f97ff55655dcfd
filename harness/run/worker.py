"""A worker process: imports the job once, then judges one cell after another until its input ends.

Run as `python -m staticfire.harness.run.worker FD`: commands come on standard input, answers leave on the descriptor
FD, and standard output and error are free text which the runner keeps as evidence. The worker never outlives the
runner: a thread waits for the end of input even while a cell is computed, and on Linux the kernel kills it too.
"""

import ctypes
import faulthandler
import os
import queue
import signal
import sys
import threading
import time
import traceback
from typing import BinaryIO

import msgspec

from staticfire.harness.matrix.cell import Cell
from staticfire.harness.run.job import Job, JobContext, JobResult, checked, load_job
from staticfire.harness.run.plain import plain
from staticfire.harness.run.wire import (
    Begun,
    Done,
    Execute,
    FromWorker,
    Ready,
    Setup,
    ToWorker,
    Unusable,
    decode_to_worker,
    encode,
)

DUMP_SIGNAL = signal.SIGUSR1
"""Makes a worker write the stacks of its threads to standard error; the runner sends it before it ends a hang."""

PR_SET_PDEATHSIG = 1

MAX_MESSAGE = 1_000_000
"""Bytes. Evidence that nobody can read helps nobody, and every verdict is kept in the journal and in memory."""


def main(results_fd: int) -> None:
    """Serve until the input ends."""
    parent = os.getppid()
    _die_with_parent(parent)
    faulthandler.enable()
    faulthandler.register(DUMP_SIGNAL, all_threads=True)
    os.set_inheritable(results_fd, False)
    commands: queue.SimpleQueue[ToWorker] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(sys.stdin.buffer, commands), daemon=True).start()
    with os.fdopen(results_fd, "wb", buffering=0) as results:
        _serve(commands, results)


def _serve(commands: "queue.SimpleQueue[ToWorker]", results: BinaryIO) -> None:
    setup = commands.get()
    assert isinstance(setup, Setup), setup
    started = time.perf_counter()
    try:
        job = load_job(setup.job)
    except Exception as error:  # noqa: BLE001 - a module may fail in any way while it is imported
        traceback.print_exc()
        _send(results, Unusable(message=f"{type(error).__name__}: {error}"))
        return
    _send(results, Ready(seconds=time.perf_counter() - started))
    while True:
        command = commands.get()
        assert isinstance(command, Execute), command
        _send(results, Begun(id=command.cell.id))
        _send(results, execute(job, command.cell, setup.context))


def execute(job: Job, cell: Cell, context: JobContext) -> Done:
    """Run the job on one cell; whatever it raises, SystemExit included, is an `error` verdict."""
    started = time.perf_counter()
    try:
        result = checked(job(cell, context))
    except BaseException as error:  # noqa: BLE001 - a cell may end in any way; the worker goes on
        result = JobResult(verdict="error", detail=_evidence(error))
    return Done(
        id=cell.id,
        verdict=result.verdict,
        seconds=time.perf_counter() - started,
        rule=result.rule,
        detail=plain(dict(result.detail)) if result.detail else None,
    )


def _evidence(error: BaseException) -> dict[str, str]:
    lines = traceback.format_exception(error)
    return {"error": f"{type(error).__name__}: {error}", "traceback": "".join(lines)}


def _send(results: BinaryIO, message: FromWorker) -> None:
    data = encode(message)
    if isinstance(message, Done) and len(data) > MAX_MESSAGE:
        note = f"the detail had {len(data)} bytes, more than {MAX_MESSAGE}, and was left out"
        data = encode(msgspec.structs.replace(message, detail={"note": note}))
    line = memoryview(data)
    while line:  # an unbuffered pipe may take a part
        line = line[results.write(line) or 0 :]


def _listen(commands: BinaryIO, out: "queue.SimpleQueue[ToWorker]") -> None:
    for line in commands:
        out.put(decode_to_worker(line))
    _leave()


def _leave() -> None:
    """End at once, with every process this worker started."""
    if os.getpgrp() == os.getpid():
        os.killpg(os.getpgrp(), signal.SIGKILL)
    os._exit(0)


def _die_with_parent(parent: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it died before the call
            _leave()


if __name__ == "__main__":
    main(int(sys.argv[1]))
