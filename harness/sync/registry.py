"""Engines that can be audited live."""

from importlib import import_module
from typing import Any, Final

from staticfire.harness.sync.base import LiveEngine

ENGINES: Final[dict[str, str]] = {
    "reference": "staticfire.harness.sync.reference:ReferenceEngine",
    "vllm": "staticfire.harness.sync.vllm.engine:VllmEngine",
}
"""Name -> `module:class`; imported when it is asked for, since an engine may bring torch along."""


def make_engine(name: str, **options: Any) -> LiveEngine:
    """An engine by name.

    Args:
        name: A key of `ENGINES`.
        **options: What its class takes.
    """
    module, _, attribute = ENGINES[name].partition(":")
    engine: LiveEngine = getattr(import_module(module), attribute)(**options)
    return engine
