"""Engines and the server that shows them: one thread looks after the engines, any other only reads what it put up."""

from types import TracebackType
from typing import Self

from staticfire.engine.errors import EngineError
from staticfire.engine.metrics.server import MetricsServer
from staticfire.engine.metrics.snapshot import Board, Engines, take


class Service:
    """A metrics server before, while and after there are engines behind it; a context manager.

    Listening begins at once, so that a port in use is known before a model is loaded; until `watch` the server says
    that nothing is ready.

    Args:
        port: TCP port; 0 finds a free one.
        host: Address to listen on.

    Raises:
        EngineError: The address cannot be listened on.
    """

    def __init__(self, port: int, host: str) -> None:
        self._board = Board()
        self._engines: Engines | None = None
        self._dead: dict[int, str] = {}
        self.server = MetricsServer(self._board.read, port, host)

    @property
    def url(self) -> str:
        """Address of the server."""
        return self.server.url

    def watch(self, engines: Engines) -> None:
        """Show these engines from now on."""
        self._engines = engines
        self.look()

    def look(self) -> dict[int, str]:
        """See how the engines are and put it up.

        Returns:
            Engines found dead by this look for the first time, and why.

        Raises:
            EngineError: No engines are watched.
        """
        if self._engines is None:
            raise EngineError("there are no engines to look at yet")
        snapshot = take(self._engines)
        self._board.publish(snapshot)
        dead = {index: found.dead for index, found in snapshot.items() if found.dead is not None}
        news = {index: why for index, why in dead.items() if index not in self._dead}
        self._dead = dead
        return news

    @property
    def alive(self) -> int:
        """Engines that lived at the last look."""
        return sum(found.dead is None for found in self._board.read().values())

    def close(self) -> None:
        """Stop listening."""
        self.server.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
