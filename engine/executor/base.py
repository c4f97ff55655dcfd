"""The contract of an executor: the workers of one engine, as the engine core sees them. Imports no torch."""

from collections.abc import Callable
from typing import Literal, Protocol

from staticfire.engine.config.engine_config import EngineConfig
from staticfire.engine.scheduler.output import SchedulerOutput, StepOutput
from staticfire.engine.view import View

Phase = Literal["spawned", "imported", "joined", "loaded", "aligned", "ready"]
"""How far a rank is: its process exists; its modules are imported; it has met the other ranks; it has its weights; it
has settled its copy of the configuration; its caches are mapped."""

Progress = Callable[[int, int, Phase], None]
"""Told (rank, process id, phase) as ranks come on."""


class Executor(Protocol):
    """Workers that are ready.

    Attributes:
        config: What every rank made of its own copy of the configuration; they agree.
    """

    config: EngineConfig

    def execute(self, output: SchedulerOutput) -> StepOutput:
        """Compute one step on every rank.

        Raises:
            EngineError: The step failed and left the workers as they were: logits that are not finite.
            EngineDeadError: A rank died, failed alone or did not answer in time; there are no workers any more.
        """

    def forget(self) -> None:
        """Keep nothing of the requests so far; what the caches hold is the scheduler's affair."""

    def views(self) -> list[View]:
        """The configuration as each rank holds it now, asked of the rank itself."""

    def check(self) -> None:
        """Look whether every rank is alive, between steps; it does not wait.

        Raises:
            EngineDeadError: One is not; there are no workers any more.
        """

    def close(self) -> None:
        """End the workers; a second call does nothing."""
