"""How long anything may take before it counts as an error. Imports no torch."""

from dataclasses import dataclass
from typing import Final, Self

from staticfire.engine.executor import limits as executor

GRACE_S: Final = 30.0
"""How much longer than an executor the front end waits for the same: the one nearer to the cause says more of it."""


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
    ready_s: float = executor.Limits().start + GRACE_S
    join_s: float = 120.0
    silence_s: float = executor.Limits().step + GRACE_S
    end_s: float = 2.0

    @classmethod
    def from_environment(cls) -> Self:
        """The defaults, where the environment does not say otherwise; the variables are the executor's.

        Raises:
            EngineError: One of them is no number of seconds above 0.
        """
        said = executor.Limits.from_environment()
        return cls(ready_s=said.start + GRACE_S, silence_s=said.step + GRACE_S)
