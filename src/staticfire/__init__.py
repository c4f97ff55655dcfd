"""Staticfire: prove every configuration of a hybrid LLM inference engine before it costs a GPU."""

__version__ = "0.1.0"

__all__ = ["__version__"]
