"""The one error of the cache's bookkeeping about itself."""


class CacheCorruptionError(RuntimeError):
    """The cache's books contradict each other: a fault of the engine, never of the user."""
