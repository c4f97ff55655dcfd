"""Answers of engines that cannot become one configuration."""

from staticfire.engine.errors import EngineStartError


class ReadyError(EngineStartError):
    """Engines disagree, or answer what was not resolved, or the front end has no place for an answer."""
