"""How what the worker says is told apart: it refuses, or nobody here knows."""

from typing import Any


class NotKnownError(Exception):
    """What the worker says cannot be asked here; the text says why."""


class RefusedError(Exception):
    """The engine refuses; the cause is its own exception.

    Attributes:
        error: What it raised.
        phase: The part that refuses: `worker` or `capacity`.
        doubt: Why it may yet accept on the device; empty where it cannot.
        values: What it looked at, where that is known better than from the lines that raise.
    """

    def __init__(
        self, error: Exception, phase: str = "worker", doubt: str = "", values: "list[dict[str, Any]] | None" = None
    ) -> None:
        """Carry what the engine raised."""
        super().__init__(str(error))
        self.error = error
        self.phase = phase
        self.doubt = doubt
        self.values = values or []
