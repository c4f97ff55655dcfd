"""What the engine says while it resolves: warnings about ignored, deprecated and overridden values."""

import logging
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .standin import ENGINE, engine_path

_MOST = 50


class Notes(logging.Handler):
    """Collects warnings of the engine's logger, once each."""

    def __init__(self) -> None:
        """Collect nothing yet."""
        super().__init__(logging.WARNING)
        self.said: dict[tuple[str, str], None] = {}

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a message and where it was logged."""
        origin = f"{engine_path(record.pathname) or record.pathname}:{record.lineno}"
        try:
            message = record.getMessage()
        except (TypeError, ValueError):
            message = str(record.msg)
        if len(self.said) < _MOST:
            self.said.setdefault((message, origin), None)

    @contextmanager
    def collect(self) -> Iterator[None]:
        """Collect what is said in the block."""
        self.said = {}
        _say_again()
        logger = logging.getLogger(ENGINE)
        logger.addHandler(self)
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", DeprecationWarning)
                yield
            for warning in caught:
                path = engine_path(warning.filename)
                if path is not None:
                    self.said.setdefault((str(warning.message), f"{path}:{warning.lineno}"), None)
        finally:
            logger.removeHandler(self)

    def plain(self) -> list[dict[str, str]]:
        """The notes as JSON can say them."""
        return [{"message": message, "origin": origin} for message, origin in self.said]


def _say_again() -> None:
    """Let messages that are logged once a process be logged once a question."""
    module: Any = sys.modules.get(f"{ENGINE}.logger")
    for name, value in list(vars(module).items()) if module else ():
        if name.startswith("_print") and hasattr(value, "cache_clear"):
            value.cache_clear()
