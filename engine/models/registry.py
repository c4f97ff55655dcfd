"""Which architectures the engine runs. Imports no torch, so that configuration may ask."""

from importlib import import_module
from typing import TYPE_CHECKING, cast

from staticfire.engine.errors import EngineError

if TYPE_CHECKING:
    from staticfire.engine.models.base import Family

FAMILIES: dict[str, str] = {
    "JambaForCausalLM": "staticfire.engine.models.jamba",
    "LlamaForCausalLM": "staticfire.engine.models.llama",
    "Qwen3ForCausalLM": "staticfire.engine.models.llama",
}
"""Architecture -> module with `tensor_specs` and `build`."""


def family(architecture: str) -> "Family":
    """Return the module that runs `architecture`.

    Raises:
        EngineError: The engine knows how to configure such a model at best, not how to run it.
    """
    if architecture not in FAMILIES:
        raise EngineError(
            f"architecture {architecture!r} cannot be run by this engine yet; it runs {', '.join(sorted(FAMILIES))}"
        )
    return cast("Family", import_module(FAMILIES[architecture]))
