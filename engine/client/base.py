"""The contract between the front end and however many engines it has, wherever they run. Imports no torch."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence

from staticfire.engine.config.engine_config import EngineConfig
from staticfire.engine.errors import EngineDeadError
from staticfire.engine.exchange import FinishedRequest, NewRequest
from staticfire.engine.stats import EngineStats
from staticfire.engine.view import View


class Client(ABC):
    """Engines that are ready.

    Attributes:
        config: The configuration as the front end has it, with what the engines settled.
        engine_configs: The same of each engine, by index.
        unreported: By engine, the `section.field`s that it must settle and did not report, as an older one would.
    """

    config: EngineConfig
    engine_configs: Mapping[int, EngineConfig]
    unreported: Mapping[int, tuple[str, ...]]

    @abstractmethod
    def add(self, requests: Sequence[NewRequest]) -> None:
        """Admit all of the requests, or none.

        An id is taken until the caller was told how its request ended.

        Raises:
            RequestError: Any of them is refused; all reasons at once.
            EngineDeadError: No engine is left.
        """

    @abstractmethod
    def abort(self, request_ids: Collection[str], *, report: bool = True) -> None:
        """End requests now; unknown ids are passed over.

        Args:
            request_ids: Which.
            report: Whether a later `step` returns each with what it has. Without, nothing more is heard of them, not
                even what an earlier abort asked for, and their ids are free.
        """

    @abstractmethod
    def has_unfinished(self) -> bool:
        """Whether `step` has something to wait for or to report."""

    @abstractmethod
    def step(self) -> list[FinishedRequest]:
        """Compute a step, or wait a moment for engines that do; returns the requests that ended.

        Raises:
            EngineError: A step failed; its requests are gone, the others are not touched.
            EngineDeadError: The last engine died. With others left, what it took along is in `take_lost`.
        """

    def take_lost(self) -> dict[str, EngineDeadError]:
        """Requests that engines took along when they died, since the last call, each with the reason."""
        return {}

    @abstractmethod
    def stats(self) -> dict[int, EngineStats]:
        """What each engine said last of itself; engines that have not spoken yet are missing."""

    def dead(self) -> dict[int, str]:
        """Engines that are no more, each with how it ended, in one line."""
        return {}

    @abstractmethod
    def views(self) -> list[View]:
        """The configuration as every holder has it: the front end, each core, each worker.

        Raises:
            EngineDeadError: An engine died, or did not answer in time.
        """

    @abstractmethod
    def close(self) -> None:
        """Let the engines go; closing again does nothing.

        Afterwards nothing is unfinished, `abort` does nothing, and everything else raises `EngineDeadError`.
        """
