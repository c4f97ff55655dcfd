"""The one worker in this process."""

from staticfire.engine.config.engine_config import ResolvedConfig
from staticfire.engine.executor.base import Progress
from staticfire.engine.observer import Observer
from staticfire.engine.scheduler.output import SchedulerOutput, StepOutput
from staticfire.engine.view import View, flatten
from staticfire.engine.worker.worker import Worker


class InlineExecutor:
    """Calls its worker directly.

    Attributes:
        config: See `Executor`.
        runner: The worker's, for whoever looks inside.
    """

    def __init__(
        self,
        resolved: ResolvedConfig,
        *,
        engine_index: int = 0,
        observer: Observer | None = None,
        progress: Progress | None = None,
    ) -> None:
        """Load the model, align, map the caches.

        Raises:
            EngineError: The engine cannot run this configuration.
            CheckpointError: The checkpoint is broken.
        """
        del progress  # no phase of it can be lost: whoever waits for one is waiting for this call
        self._engine_index = engine_index
        self._worker = Worker(resolved, observer=observer)
        self._worker.load()
        self.config = self._worker.align()
        self._worker.allocate()
        self.runner = self._worker.runner

    def execute(self, output: SchedulerOutput) -> StepOutput:
        """Compute one step."""
        return self.runner.execute(output)

    def forget(self) -> None:
        """See `Executor`."""
        self.runner.forget()

    def views(self) -> list[View]:
        """See `Executor`."""
        return [View(role="worker", engine=self._engine_index, rank=0, fields=flatten(self._worker.config))]

    def check(self) -> None:
        """Nothing to find: the worker is this process."""

    def close(self) -> None:
        """Nothing to end: the caches go with this object."""
