"""Which client serves a configuration. Imports no torch before an engine runs in this process."""

from collections.abc import Collection
from importlib import import_module
from typing import TYPE_CHECKING, cast

from staticfire.engine.client.base import Client
from staticfire.engine.config.engine_config import ResolvedConfig
from staticfire.engine.errors import EngineError

if TYPE_CHECKING:
    from staticfire.engine.observer import Observer


def make_client(
    resolved: ResolvedConfig, eos_token_ids: Collection[int] = (), observer: "Observer | None" = None
) -> Client:
    """Start the engines of a configuration and wait until they are ready.

    Args:
        resolved: An accepted configuration.
        eos_token_ids: Tokens that end a request unless it ignores them.
        observer: Watches every step, where the engine is in this process.

    Raises:
        EngineStartError: A process did not get ready.
        EngineError: This engine cannot run the configuration, or has an observer and runs elsewhere.
        CheckpointError: The checkpoint is broken.
    """
    parallel = resolved.parallel
    if not parallel.enable_multiprocessing:
        kind = import_module("staticfire.engine.client.inline").InlineClient
        return cast("Client", kind(resolved, eos_token_ids, observer))
    if observer is not None:
        raise EngineError(
            "an observer watches the steps of an engine in its own process: with enable_multiprocessing=True"
            + (f" (from data_parallel_size={parallel.data_parallel_size})" if parallel.data_parallel_size > 1 else "")
            + " the steps are in another"
        )
    kind = import_module("staticfire.engine.client.processes").ProcessClient
    return cast("Client", kind(resolved, eos_token_ids))
