"""Which of the data-parallel engines gets the next request. Imports no torch."""

from collections.abc import Collection, Mapping

from staticfire.engine.wire.messages import Load

WAITING_WEIGHT = 4
"""A waiting request says more about what a new one has to wait for than a running one; the number is vLLM's."""


class Balancer:
    """Chooses by the loads that the coordinator publishes, and by what was sent since.

    Args:
        engines: Indices of the engines.
    """

    def __init__(self, engines: Collection[int]) -> None:
        self._loads = {engine: Load(0, 0) for engine in engines}
        self._sent = dict.fromkeys(engines, 0)

    @property
    def loads(self) -> Mapping[int, Load]:
        """As published last; (0, 0) before the first time."""
        return self._loads

    def hear(self, loads: Mapping[int, Load]) -> None:
        """Take in what the coordinator published; engines of other front ends count for nothing here."""
        for engine in self._loads.keys() & loads.keys():
            self._loads[engine] = loads[engine]
            self._sent[engine] = 0

    def choose(self, alive: Collection[int], own: Mapping[int, int]) -> int:
        """The engine for the next request, which counts from now on.

        Args:
            alive: Engines to choose from, at least one.
            own: Unfinished requests of this front end on each: decides between equals.
        """
        chosen = min(alive, key=lambda engine: (self._score(engine), own.get(engine, 0), engine))
        self._sent[chosen] += 1
        return chosen

    def _score(self, engine: int) -> int:
        load = self._loads[engine]
        return WAITING_WEIGHT * (load.waiting + self._sent[engine]) + load.running
