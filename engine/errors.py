"""The engine's own errors. A user's mistake is one of these, never a traceback from inside torch.

EngineError
|- ConfigError        a configuration is refused (all reasons at once)
|- CheckpointError    a checkpoint cannot be loaded (names file and tensor)
|- RequestError       a request cannot be admitted
|- WireError          a message is damaged, too large, or of another protocol
|- EngineStartError   an engine did not get ready (names the phase)
`- EngineDeadError    a process of the engine ended while it was needed (names who, how, and what is lost)
"""


class EngineError(Exception):
    """Root of all errors that are about what the user gave."""


class CheckpointError(EngineError):
    """A checkpoint is broken, incomplete or of another shape than its configuration says."""


class RequestError(EngineError):
    """A request cannot be admitted."""


class WireError(EngineError):
    """A message between processes is damaged, too large or of another protocol."""
