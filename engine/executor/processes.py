"""Tensor-parallel workers, one process a rank."""

import contextlib
import os
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as Late
from pathlib import Path
from typing import Final, TypeVar

from staticfire.engine.config.engine_config import EngineConfig, ResolvedConfig
from staticfire.engine.errors import EngineStartError
from staticfire.engine.executor.agreement import disagreements
from staticfire.engine.executor.base import Phase, Progress
from staticfire.engine.executor.limits import START, STEP, Limits
from staticfire.engine.executor.messages import Answer, AskView, Forget, FromRank, Holds, Reached, Setup, StepFailed
from staticfire.engine.executor.ranks import ENTRY, Doing, Ranks
from staticfire.engine.executor.steps import StepWriter
from staticfire.engine.process.cores import available_cores
from staticfire.engine.process.folder import PrivateFolder
from staticfire.engine.process.kernels import kernel_environment
from staticfire.engine.scheduler.output import SchedulerOutput, StepOutput
from staticfire.engine.view import View
from staticfire.engine.wire.config import decode_engine_config, encode_config
from staticfire.engine.wire.faults import to_error

T = TypeVar("T")

CLOSE_S: Final = 2.0
"""For a step that an interrupt has left behind; then its ranks are killed."""


class ProcessExecutor:
    """Ranks in child processes, in lockstep.

    One thread alone speaks to them. Ctrl-C reaches the main thread only, so it can stop the wait for an answer, but
    never cut a message in two: the thread finishes the step, and the next one finds the ranks where it left them.

    Attributes:
        config: What every rank settled; see `Executor`.
    """

    config: EngineConfig

    def __init__(
        self,
        resolved: ResolvedConfig,
        *,
        engine_index: int = 0,
        progress: Progress | None = None,
        time_limits: Limits | None = None,
        folder: str | None = None,
        entry: str = ENTRY,
    ) -> None:
        """Spawn one process a rank and wait until all are ready.

        Args:
            resolved: The configuration that each rank gets a copy of.
            engine_index: The engine's place among data-parallel ones.
            progress: Told of every rank's phases.
            time_limits: How long to wait; from the environment where left out.
            folder: For the ranks to meet in, removed by its owner; None makes one.
            entry: What the processes run, as `Child` takes it.

        Raises:
            EngineError: A rank cannot run this configuration.
            CheckpointError: The checkpoint is broken.
            EngineStartError: A rank died, failed or was late, or ranks settled different configurations.
        """
        self._limits = time_limits or Limits.from_environment()
        self._engine_index = engine_index
        self._writer = StepWriter()
        size = resolved.parallel.tensor_parallel_size
        encoded = encode_config(resolved)

        def setup(rank: int, rendezvous: str) -> Setup:
            return Setup(
                config=encoded,
                rank=rank,
                size=size,
                rendezvous=rendezvous,
                join_limit_s=self._limits.start,
                step_limit_s=self._limits.step,
            )

        names = [f"worker {engine_index}.{rank}" for rank in range(size)]
        self._ranks = Ranks(
            names, setup, _environment(resolved), progress or _nobody, entry, _meeting(folder, engine_index)
        )
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"executor {engine_index}")
        self._end = weakref.finalize(self, _end, self._ranks, self._thread)
        try:
            self.config = self._wait_until_ready()
        except BaseException:
            self._ranks.kill()
            self.close()
            raise

    @property
    def pids(self) -> list[int]:
        """Process ids, by rank."""
        return [child.pid for child in self._ranks.children]

    def _wait_until_ready(self) -> EngineConfig:
        settled: dict[int, EngineConfig] = {}

        def handle(rank: int, message: FromRank) -> bool:
            assert isinstance(message, Reached), message
            if message.phase == "aligned":
                settled[rank] = decode_engine_config(message.config)
            self._ranks.reached(rank, message.phase)
            return message.phase == "ready"

        self._ranks.hear(handle, self._limits.start, Doing("getting ready", f"{START}={self._limits.start:g}"))
        differing = disagreements(settled)
        if differing:
            raise EngineStartError(
                f"the ranks of engine {self._engine_index} settled different configurations: {'; '.join(differing)}"
            )
        return settled[0]

    def execute(self, output: SchedulerOutput) -> StepOutput:
        """See `Executor`."""
        return self._call(lambda: self._step(output))

    def _step(self, output: SchedulerOutput) -> StepOutput:
        message = self._writer.write(output)
        doing = self._doing("computing a step")
        self._ranks.tell(message, self._limits.step, doing)
        answers: list[StepOutput] = []
        faults: list[Exception] = []

        def handle(rank: int, answer: FromRank) -> bool:
            assert isinstance(answer, Answer | StepFailed), answer
            assert answer.number == message.number, (rank, answer.number, message.number)
            if isinstance(answer, StepFailed):
                faults.append(to_error(answer.fault))
            elif answer.output is not None:
                answers.append(answer.output)
            return True

        self._ranks.hear(handle, self._limits.step, doing)
        if faults:
            raise faults[0]
        return answers[0]

    def forget(self) -> None:
        """See `Executor`."""
        self._call(self._forget)

    def _forget(self) -> None:
        self._writer.forget()
        self._ranks.tell(Forget(), self._limits.step, self._doing("forgetting requests"))

    def views(self) -> list[View]:
        """See `Executor`."""
        return self._call(self._views)

    def _views(self) -> list[View]:
        views: dict[int, View] = {}

        def handle(rank: int, message: FromRank) -> bool:
            assert isinstance(message, Holds), message
            views[rank] = View(role="worker", engine=self._engine_index, rank=rank, fields=message.fields)
            return True

        doing = self._doing("describing its configuration")
        self._ranks.tell(AskView(), self._limits.step, doing)
        self._ranks.hear(handle, self._limits.step, doing)
        return [views[rank] for rank in sorted(views)]

    def check(self) -> None:
        """See `Executor`."""
        self._call(self._ranks.look)

    def _call(self, work: Callable[[], T]) -> T:
        """Have the thread do it. An interrupt leaves it to the thread, which does the next thing after it."""
        self._ranks.owner.insist()
        try:
            future = self._thread.submit(work)
        except RuntimeError:
            self._ranks.refuse_if_dead()  # closed: it takes no more work
            raise
        return future.result()

    def _doing(self, what: str) -> Doing:
        return Doing(what, f"{STEP}={self._limits.step:g}")

    def close(self) -> None:
        """See `Executor`."""
        self._end()


def _meeting(folder: str | None, engine_index: int) -> PrivateFolder | Path:
    """A new place for the ranks of one engine."""
    if folder is None:
        return PrivateFolder()
    place = Path(folder, f"ranks-{engine_index}")
    place.mkdir()
    return place


def _nobody(rank: int, pid: int, phase: Phase) -> None:
    """Tell nobody of a phase."""


def _end(ranks: Ranks, thread: ThreadPoolExecutor) -> None:
    """End the ranks and the thread that speaks to them; it knows nothing of the executor, so that that can go first."""
    if not ranks.owner.is_here():
        return
    try:
        with contextlib.suppress(RuntimeError):  # the interpreter ends and takes no more work
            thread.submit(ranks.stop).result(CLOSE_S)
    except Late:
        pass
    finally:
        ranks.kill()
        thread.shutdown()


def _environment(resolved: ResolvedConfig) -> dict[str, str]:
    """How kernels run, and threads for each rank: more than the processors have costs more than it brings."""
    kernels = kernel_environment(resolved.kernel.backend)
    if "OMP_NUM_THREADS" in os.environ:
        return kernels
    processes = resolved.parallel.tensor_parallel_size * resolved.parallel.data_parallel_size
    threads = str(max(1, available_cores() // processes))
    return {**kernels, "OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": threads, "OMP_WAIT_POLICY": "PASSIVE"}
