"""Every engine that can be under test, by the name that `--sf-engine` takes."""

from collections.abc import Callable
from typing import Final

from staticfire.harness.plugin.engines.base import EngineUnderTest


def _reference() -> EngineUnderTest:
    from staticfire.harness.plugin.engines.reference import Reference  # noqa: PLC0415 -- brings torch

    return Reference()


def _vllm() -> EngineUnderTest:
    from staticfire.harness.plugin.engines.vllm import Vllm  # noqa: PLC0415 -- the other engine

    return Vllm()


ENGINES: Final[dict[str, Callable[[], EngineUnderTest]]] = {"reference": _reference, "vllm": _vllm}
