"""One rank of an engine: its part of the model, its caches, and its own copy of the configuration."""

from staticfire.engine.cache.layout import plan_cache
from staticfire.engine.config.engine_config import EngineConfig, ResolvedConfig
from staticfire.engine.models.base import Decoder
from staticfire.engine.observer import Observer
from staticfire.engine.parallel.base import Group
from staticfire.engine.parallel.single import SINGLE
from staticfire.engine.worker.backend import require_backend
from staticfire.engine.worker.load import load_model
from staticfire.engine.worker.runner import ModelRunner
from staticfire.engine.worker.settle import settle_worker


class Worker:
    """Made ready in three stages, in this order: `load`, `align`, `allocate`.

    Alignment comes after the weights, as in vLLM, whose layers then say what their states and kernels need; what it
    changes is this rank's copy of the configuration and nobody else's.

    Attributes:
        config: Its copy, once aligned.
        runner: Computes steps, once allocated.
    """

    config: EngineConfig
    runner: ModelRunner

    def __init__(self, resolved: ResolvedConfig, group: Group = SINGLE, observer: Observer | None = None) -> None:
        """Be one rank of `group`."""
        self._resolved = resolved
        self._group = group
        self._observer = observer
        self._model: Decoder | None = None

    def load(self) -> None:
        """Read the weights.

        Raises:
            EngineError: The engine cannot run this configuration, or not in this process.
            CheckpointError: The checkpoint is broken.
        """
        require_backend(self._resolved.kernel.backend)
        self._model = load_model(self._resolved, self._group)

    def align(self) -> EngineConfig:
        """Settle what only a worker can: block sizes, the pool, the longest request."""
        self.config = settle_worker(self._resolved)
        return self.config

    def allocate(self) -> None:
        """Map the caches as the aligned configuration plans them.

        Raises:
            EngineError: The machine has no room for them.
        """
        assert self._model is not None, "load comes first"
        self.runner = ModelRunner(self._model, plan_cache(self.config), self._observer, self.config.kernel.backend)
