"""Runs cells in worker processes and survives whatever happens to them.

Every cell that a worker took ends in exactly one result: the worker's own, or an `error` that the runner writes when
the worker died, hung, or sent something unreadable; a new worker then takes its place. A cell sent to a worker that was
dead already goes to another. The runner never waits for a worker without a limit. It runs in one thread and
prints nothing.
"""

import selectors
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

import msgspec

from staticfire.harness.matrix.cell import Cell
from staticfire.harness.run.errors import RunAbortedError
from staticfire.harness.run.job import JobContext
from staticfire.harness.run.plan import Plan, one_pool
from staticfire.harness.run.process import Running, WorkerProcess, describe_exit
from staticfire.harness.run.result import GOOD, CellResult
from staticfire.harness.run.signals import StopSignals
from staticfire.harness.run.wire import Begun, Done, Ready, Setup, Unusable, decode_from_worker

TICK_SECONDS = 0.25
START_LIMIT_SECONDS = 180.0
STACK_DUMP_SECONDS = 0.5
EXIT_PATIENCE_SECONDS = 1.0
MAX_FAILED_STARTS = 3


class Listener(Protocol):
    """Is told what happens, in the runner's thread."""

    def started(self, cell: Cell, worker: int) -> None:
        """A worker began a cell."""

    def finished(self, result: CellResult) -> None:
        """A cell has its verdict."""

    def tick(self) -> None:
        """Time has passed; called about four times a second."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How to run.

    Attributes:
        job: `package.module:function`.
        context: Handed to the job.
        workers: Worker processes at a time.
        timeout: Seconds a cell may take before it counts as a hang.
        environment: The workers' environment.
        fail_fast: Begin no cell after the first finding.
        pool_of: Which pool of workers a cell is for.
        pools: Pool -> what its workers have in their environment besides.
    """

    job: str
    context: JobContext
    workers: int
    timeout: float
    environment: Mapping[str, str]
    fail_fast: bool = False
    pool_of: Callable[[Cell], str] = one_pool
    pools: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


class Supervisor:
    """Executes cells.

    Args:
        settings: How.
        record: Makes a result permanent; called before anybody is told of it.
        listener: Is told of what happens.
        signals: Where a signal that asks for the end shows up.
    """

    def __init__(
        self,
        settings: Settings,
        record: Callable[[CellResult], None],
        listener: Listener,
        signals: StopSignals,
    ) -> None:
        self._settings = settings
        self._record = record
        self._listener = listener
        self._signals = signals
        self._selector = selectors.DefaultSelector()
        self._workers: dict[int, WorkerProcess] = {}
        self._pool: dict[int, str] = {}
        self._plan = Plan(())
        self._failed_starts = 0
        self._stopping = False

    def run(self, cells: Sequence[Cell]) -> None:
        """Run `cells`, each once. No worker is left when this returns or raises.

        Raises:
            Interrupted: A signal asked for the end.
            RunAbortedError: Workers fail to start, one after another.
            OSError: `record` failed.
        """
        self._plan = Plan(cells, self._settings.pool_of)
        self._selector.register(self._signals, selectors.EVENT_READ, None)
        try:
            for number in range(1, min(self._settings.workers, len(cells)) + 1):
                self._start(number)
            while self._workers:
                self._step()
        finally:
            for worker in list(self._workers.values()):
                self._end(worker)
            self._selector.close()

    def _step(self) -> None:
        self._signals.check()
        for worker in list(self._workers.values()):
            self._feed(worker)
        readable = {
            id(key.data): cast("WorkerProcess", key.data)
            for key, _ in self._selector.select(self._patience())
            if key.data is not None
        }
        self._signals.check()
        for worker in readable.values():
            self._hear(worker)
        self._look_after(self._workers.values())
        self._listener.tick()

    def _patience(self) -> float:
        nearest = min((worker.deadline for worker in self._workers.values()), default=0.0)
        return max(0.0, min(TICK_SECONDS, nearest - time.monotonic()))

    def _start(self, number: int) -> None:
        """Start a worker of the pool that needs one most, while there is work."""
        pool = None if self._stopping else self._plan.neediest(self._pool.values())
        if pool is None:
            return
        environment = {**self._settings.environment, **self._settings.pools.get(pool, {})}
        setup = Setup(job=self._settings.job, context=self._settings.context)
        deadline = time.monotonic() + START_LIMIT_SECONDS
        try:
            worker = WorkerProcess(number, setup, environment, deadline, self._selector)
        except OSError as error:
            raise RunAbortedError(f"cannot start a worker process: {error}") from error
        self._workers[number], self._pool[number] = worker, pool

    def _feed(self, worker: WorkerProcess) -> None:
        if not worker.ready or worker.running is not None:
            return
        cell = None if self._stopping else self._plan.take(worker.number, self._pool[worker.number])
        if cell is None:
            self._end(worker)
            self._start(worker.number)
            return
        worker.execute(cell, time.monotonic(), self._settings.timeout)
        self._listener.started(cell, worker.number)

    def _hear(self, worker: WorkerProcess) -> None:
        lines, ended = worker.read()
        for line in () if worker.overdue else lines:
            try:
                self._understand(worker, line)
            except msgspec.DecodeError as error:
                self._lose(worker, f"the worker sent what is no message ({error})", message=repr(line[:200]))
                return
        if ended:
            self._lose(worker, None)

    def _understand(self, worker: WorkerProcess, line: bytes) -> None:
        match decode_from_worker(line):
            case Ready():
                worker.ready = True
                worker.deadline = float("inf")
            case Begun():
                worker.begun = True
                self._failed_starts = 0
            case Done() as done if worker.running is not None and worker.running.cell.id == done.id:
                cell = worker.finished()
                worker.deadline = float("inf")
                result = CellResult(
                    id=cell.id,
                    axes=cell.axes,
                    verdict=done.verdict,
                    seconds=done.seconds,
                    rule=done.rule,
                    detail=done.detail,
                )
                self._settle(result)
            case Done() as done:
                raise msgspec.ValidationError(f"a verdict for {done.id!r}, which it was not asked for")
            case Unusable() as unusable:
                raise RunAbortedError(f"the workers cannot start: {unusable.message}\n{worker.tail()}")

    def _look_after(self, workers: Iterable[WorkerProcess]) -> None:
        now = time.monotonic()
        for worker in list(workers):
            if worker.exit_code() is not None:
                self._hear(worker)  # a verdict may still be in the pipe
                if self._workers.get(worker.number) is worker:
                    self._lose(worker, None)
            elif now >= worker.deadline:
                self._overdue(worker, now)

    def _overdue(self, worker: WorkerProcess, now: float) -> None:
        if worker.overdue:
            self._lose(worker, worker.overdue)
            return
        starting = f"a worker did not start within {START_LIMIT_SECONDS:g} s"
        late = f"no verdict within {self._settings.timeout:g} s (--timeout)"
        worker.dump_stacks(late if worker.running else starting)
        worker.deadline = now + STACK_DUMP_SECONDS

    def _lose(self, worker: WorkerProcess, why: str | None, **evidence: Any) -> None:
        """The worker is of no more use: settle its cell, and replace it while there is work."""
        why = why or worker.overdue
        code = worker.exit_code(EXIT_PATIENCE_SECONDS) if why is None else None
        ended = "closed its results without ending" if code is None else describe_exit(code)
        worker.kill()
        tail, running = worker.tail(), worker.running
        self._end(worker)
        if running is None:
            if not worker.ready:
                self._count_failed_start(why or f"a worker ended: {ended}", tail)
        elif not worker.begun and not worker.overdue:
            self._plan.give_back(running.cell)
            self._count_failed_start(why or f"a worker ended before it took its cell: {ended}", tail)
        else:
            fault = {"error": why} if why else {"error": f"the worker died: {ended}", "exit": ended}
            late = {"timed_out": True} if worker.overdue else {}
            after = {"worker": worker.number, "ran_before": list(worker.ran), "output": tail}
            self._settle(_error(running, {**fault, **late, **evidence, **after}))
        self._start(worker.number)

    def _count_failed_start(self, why: str, tail: str) -> None:
        self._failed_starts += 1
        if self._failed_starts >= MAX_FAILED_STARTS:
            raise RunAbortedError(f"{why}, {MAX_FAILED_STARTS} times in a row\n{tail}".rstrip())

    def _settle(self, result: CellResult) -> None:
        self._record(result)
        self._listener.finished(result)
        if self._settings.fail_fast and result.verdict not in GOOD:
            self._stopping = True

    def _end(self, worker: WorkerProcess) -> None:
        worker.kill()
        worker.close()
        self._plan.forget(worker.number)
        if self._workers.get(worker.number) is worker:
            del self._workers[worker.number], self._pool[worker.number]


def _error(running: Running, detail: Mapping[str, Any]) -> CellResult:
    """The result of a cell whose worker has none."""
    cell, since = running
    return CellResult(id=cell.id, axes=cell.axes, verdict="error", seconds=time.monotonic() - since, detail=detail)
