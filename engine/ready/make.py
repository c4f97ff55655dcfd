"""The engine's side of the ready response."""

from operator import attrgetter
from typing import Final

from staticfire import __version__
from staticfire.engine.config.engine_config import EngineConfig
from staticfire.engine.ready.response import TABLE, ReadyResponse

_SOURCES: Final = {name: travels.source for name, travels in TABLE.items() if travels.source is not None}
_read: Final = attrgetter(*_SOURCES.values())


def make_ready(config: EngineConfig, *, engine_index: int, dp_stats_address: str | None = None) -> ReadyResponse:
    """Answer for one engine, from the configuration that its workers settled and agreed on.

    Args:
        config: The engine's own.
        engine_index: Which of the data-parallel engines it is, from 0.
        dp_stats_address: Where the coordinator publishes, as the engine learned it; None without one.

    Returns:
        The response, with every declared field.
    """
    values = dict(zip(_SOURCES, _read(config), strict=True))
    return ReadyResponse(engine_index=engine_index, version=__version__, dp_stats_address=dp_stats_address, **values)
