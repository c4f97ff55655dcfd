"""Which executor runs a configuration. Imports no torch before one is made."""

from importlib import import_module
from typing import TYPE_CHECKING, cast

from staticfire.engine.config.engine_config import ResolvedConfig
from staticfire.engine.errors import EngineError
from staticfire.engine.executor.base import Executor, Progress

if TYPE_CHECKING:
    from staticfire.engine.observer import Observer


def make_executor(
    resolved: ResolvedConfig,
    *,
    engine_index: int = 0,
    observer: "Observer | None" = None,
    progress: Progress | None = None,
    folder: str | None = None,
) -> Executor:
    """Start the workers of one engine and wait until they are ready.

    Args:
        resolved: The configuration; every rank aligns its own copy of it.
        engine_index: The engine's place among data-parallel ones, for the names in messages and views.
        observer: Watches every step, where there is one rank.
        progress: Told how far each rank is.
        folder: For ranks to meet in; None makes one.

    Raises:
        EngineError: The configuration cannot be run, or has an observer and several ranks.
        CheckpointError: The checkpoint is broken.
        EngineStartError: A rank died, failed, did not get ready in time, or settled another configuration than the
            others.
    """
    if resolved.parallel.tensor_parallel_size == 1:
        kind = import_module("staticfire.engine.executor.inline").InlineExecutor
        return cast("Executor", kind(resolved, engine_index=engine_index, observer=observer, progress=progress))
    if observer is not None:
        raise EngineError(
            f"an observer watches one process: with tensor_parallel_size={resolved.parallel.tensor_parallel_size} each "
            "rank has its own"
        )
    kind = import_module("staticfire.engine.executor.processes").ProcessExecutor
    return cast("Executor", kind(resolved, engine_index=engine_index, progress=progress, folder=folder))
