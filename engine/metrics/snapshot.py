"""All engines at one moment, as whoever owns them last saw them. Imports no torch."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from staticfire.engine.config.engine_config import EngineConfig
from staticfire.engine.stats import NOTHING_YET, EngineStats


@dataclass(frozen=True, slots=True)
class EngineSnapshot:
    """One engine.

    Attributes:
        config: Its own configuration, as settled by its workers; None until it is ready.
        stats: What it last reported; None until it did.
        dead: Why it serves no more; None while it lives.
    """

    config: EngineConfig | None = None
    stats: EngineStats | None = None
    dead: str | None = None


Snapshot = Mapping[int, EngineSnapshot]
"""Engine index -> the engine."""

Source = Callable[[], Snapshot]
"""Where a scrape reads; called from any thread."""


class Engines(Protocol):
    """As much of a client as metrics need."""

    @property
    def engine_configs(self) -> Mapping[int, EngineConfig]:
        """What each engine runs with."""
        ...

    def stats(self) -> Mapping[int, EngineStats]:
        """What each engine said last."""
        ...

    def dead(self) -> Mapping[int, str]:
        """Engines that are no more, and why."""
        ...


def take(engines: Engines) -> Snapshot:
    """A snapshot of engines that are ready, for the thread that owns them to take."""
    stats, dead = engines.stats(), engines.dead()
    return {
        index: EngineSnapshot(config, stats.get(index, NOTHING_YET), dead.get(index))
        for index, config in engines.engine_configs.items()
    }


class Board:
    """Where the thread that owns the engines writes, and the threads that answer scrapes read."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._snapshot: Snapshot = {}

    def publish(self, snapshot: Snapshot) -> None:
        """Put up how things stand."""
        with self._lock:
            self._snapshot = dict(snapshot)

    def read(self) -> Snapshot:
        """What was put up last."""
        with self._lock:
            return self._snapshot
