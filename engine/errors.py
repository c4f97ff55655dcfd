"""The engine's own errors. A user's mistake is one of these, never a traceback from inside torch.

EngineError
|- ConfigError        a configuration is refused (all reasons at once)
|- CheckpointError    a checkpoint cannot be loaded (names file and tensor)
`- RequestError       a request cannot be admitted
"""


class EngineError(Exception):
    """Root of all errors that are about what the user gave."""


class CheckpointError(EngineError):
    """A checkpoint is broken, incomplete or of another shape than its configuration says."""


class RequestError(EngineError):
    """A request cannot be admitted."""
