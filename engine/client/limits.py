"""How long anything may take before it counts as an error. Imports no torch."""

import os
from dataclasses import dataclass

from staticfire.engine.errors import EngineStartError

READY_VARIABLE = "STATICFIRE_ENGINE_READY_TIMEOUT_S"


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds.

    Attributes:
        hello_s: From the start of a process to its first word.
        ready_s: From there until it is ready: importing torch, reading the checkpoint, mapping the caches.
        join_s: For an engine to meet the data-parallel coordinator, which may be started after it.
        silence_s: For an engine with requests to say anything; it does so after each step.
        end_s: For a process to end when it is told to, before it is killed.
    """

    hello_s: float = 60.0
    ready_s: float = 600.0
    join_s: float = 120.0
    silence_s: float = 600.0
    end_s: float = 2.0

    @classmethod
    def from_environment(cls) -> "Limits":
        """The defaults, but for what the user's environment says.

        Raises:
            EngineStartError: It says what is no number of seconds.
        """
        text = os.environ.get(READY_VARIABLE)
        if text is None:
            return cls()
        try:
            seconds = float(text)
        except ValueError:
            seconds = 0.0
        if not 0 < seconds < float("inf"):
            raise EngineStartError(f"{READY_VARIABLE}={text!r}: must be a number of seconds above 0")
        return cls(ready_s=seconds)
