"""An engine in this process."""

from collections.abc import Collection, Mapping, Sequence

from staticfire.engine.client.base import Client
from staticfire.engine.config.engine_config import EngineConfig, ResolvedConfig
from staticfire.engine.core import EngineCore
from staticfire.engine.errors import EngineDeadError
from staticfire.engine.exchange import FinishedRequest, NewRequest
from staticfire.engine.observer import Observer
from staticfire.engine.ready.make import make_ready
from staticfire.engine.ready.settle import settle
from staticfire.engine.stats import EngineStats
from staticfire.engine.view import View, front_end_views


class InlineClient(Client):
    """Calls the core. What it settled comes back by the same ready response that crosses process boundaries.

    Attributes:
        core: Scheduler and worker, for step-by-step control.
    """

    def __init__(
        self, resolved: ResolvedConfig, eos_token_ids: Collection[int] = (), observer: Observer | None = None
    ) -> None:
        """Make the engine.

        Raises:
            EngineError: It cannot run this configuration.
            CheckpointError: The checkpoint is broken.
        """
        self._why_dead: str | None = None
        self.core = EngineCore(resolved, eos_token_ids, observer)
        settled = settle(resolved, [make_ready(self.core.config, engine_index=0)])
        self.config: EngineConfig = settled.config
        self.engine_configs: Mapping[int, EngineConfig] = settled.engines
        self.unreported = settled.unreported

    def add(self, requests: Sequence[NewRequest]) -> None:
        """Admit all, or none."""
        core = self._use()
        if self._why_dead is not None:
            raise EngineDeadError(f"no engine is left: {self._why_dead}", who="engine core 0")
        core.add(requests)

    def abort(self, request_ids: Collection[str], *, report: bool = True) -> None:
        """End requests now."""
        if not self._closed:
            self.core.abort(request_ids, report=report)

    def has_unfinished(self) -> bool:
        """Whether there is something to do or to report."""
        return not self._closed and self.core.has_unfinished()

    def step(self) -> list[FinishedRequest]:
        """Compute one step."""
        core = self._use()
        try:
            return core.step()
        except EngineDeadError as error:
            self._why_dead = str(error)
            raise

    def dead(self) -> dict[int, str]:
        """The engine, if its workers are no more."""
        core = self._use()
        if self._why_dead is None:
            try:
                core.check()
            except EngineDeadError as error:
                self._why_dead = str(error)
        return {} if self._why_dead is None else {0: self._why_dead}

    def stats(self) -> dict[int, EngineStats]:
        """What the engine counted so far."""
        return {0: self._use().stats()}

    def views(self) -> list[View]:
        """Front end, core and workers."""
        core = self._use()
        return [*front_end_views(self.config, self.engine_configs), *core.views()]

    def close(self) -> None:
        """End the workers, or let the model and its caches go."""
        if not self._closed:
            self.core.close()
            del self.core

    @property
    def _closed(self) -> bool:
        return not hasattr(self, "core")

    def _use(self) -> EngineCore:
        if self._closed:
            raise EngineDeadError("the engines were closed")
        return self.core
