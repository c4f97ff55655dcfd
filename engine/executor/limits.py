"""How long an executor waits. Imports no torch."""

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Self

from staticfire.engine.errors import EngineError

START: Final = "STATICFIRE_START_TIMEOUT_S"
STEP: Final = "STATICFIRE_STEP_TIMEOUT_S"
LONGEST: Final = 1e6


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds; a rank that takes longer is an error, not a hang.

    Attributes:
        start: From the first process to all ranks ready.
        step: One step on all ranks. The default is that of vLLM's `VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS`.
    """

    start: float = 600.0
    step: float = 300.0

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """The defaults, where `STATICFIRE_START_TIMEOUT_S` and `STATICFIRE_STEP_TIMEOUT_S` do not say otherwise.

        Raises:
            EngineError: One of them is no number of seconds above 0.
        """
        return cls(_seconds(environment, START, cls().start), _seconds(environment, STEP, cls().step))


def _seconds(environment: Mapping[str, str], name: str, default: float) -> float:
    text = environment.get(name)
    if text is None:
        return default
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds <= LONGEST:
        raise EngineError(f"{name}={text!r}: must be a number of seconds above 0, at most {LONGEST:.0f}")
    return seconds
