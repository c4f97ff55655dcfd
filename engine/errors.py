"""The engine's own errors. A user's mistake is one of these, never a traceback from inside torch.

EngineError
|- ConfigError        a configuration is refused (all reasons at once)
|- CheckpointError    a checkpoint cannot be loaded (names file and tensor)
|- RequestError       a request cannot be admitted
|- WireError          a message is damaged, too large, or of another protocol
|- EngineStartError   an engine did not get ready (names the phase)
`- EngineDeadError    a process of the engine ended while it was needed (names who, how, and what is lost)
"""

from collections.abc import Collection, Sequence
from typing import Any


class EngineError(Exception):
    """Root of all errors that are about what the user gave."""


class CheckpointError(EngineError):
    """A checkpoint is broken, incomplete or of another shape than its configuration says."""


class RequestError(EngineError):
    """A request cannot be admitted."""


class WireError(EngineError):
    """A message between processes is damaged, too large or of another protocol."""


class EngineStartError(EngineError):
    """An engine did not get ready: it died, took too long, or speaks another protocol. Says in which phase."""


class EngineDeadError(EngineError):
    """A process of the engine ended, or fell silent, while it was needed.

    Attributes:
        who: Which one, such as `engine core 1`.
        lost: Ids of the requests it took along; `LLM.generate` adds the numbers of their prompts to the message.
        outputs: What the other requests of the call gave: those that had finished, and those that other engines
            went on to finish. `LLM.generate` puts its `RequestOutput`s here.
    """

    def __init__(self, message: str, *, who: str = "", lost: Collection[str] = (), outputs: Sequence[Any] = ()) -> None:
        super().__init__(message)
        self.who = who
        self.lost = tuple(lost)
        self.outputs = list(outputs)
