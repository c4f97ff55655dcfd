from .registry import ModelRegistry  # noqa: F401
