"""The release of an engine that a configuration is judged for, as a plain value, and the facts that differ by release.

A rule or the arithmetic asks a fact (`release.cache_modes`), never a version number. A new fact is one attribute here,
with a value in each entry of the table and the source line that says so.

`REFERENCE` is the engine of this package, the only one that is ever run from here: `accept`, `start`, `sync` and the
matrices resolve for it. The releases of vLLM are imitated: `explain` and the comparison with an installed engine
resolve for them, and nothing is started from what comes of it.
"""

from dataclasses import dataclass
from typing import Final, Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineRelease:
    """One release of an engine by its facts.

    Attributes:
        engine: Whose release it is.
        version: Its version; empty for the engine of this package.
        cache_modes: Values of `mamba_cache_mode` that it knows.
        hybrid_prefix_caching: Whether prefix caching is on by default for a model with attention and recurrent layers.
    """

    engine: Literal["vllm", "staticfire"]
    version: str
    cache_modes: tuple[str, ...]
    hybrid_prefix_caching: bool

    @property
    def name(self) -> str:
        """What a user types: `vllm==0.33.0`, or `reference` for the engine of this package."""
        return f"{self.engine}=={self.version}" if self.engine == "vllm" else "reference"


VLLM_0_27_1: Final = EngineRelease(
    engine="vllm",
    version="0.27.1",
    cache_modes=("none", "align", "all"),  # vllm/config/cache.py: MambaCacheMode
    hybrid_prefix_caching=False,  # vllm/engine/arg_utils.py: "supported and not hybrid"
)
VLLM_0_28_0: Final = EngineRelease(
    engine="vllm",
    version="0.28.0",
    cache_modes=("none", "align", "all"),  # vllm/config/cache.py:39
    hybrid_prefix_caching=True,  # vllm/engine/arg_utils.py:2650
)
VLLM_0_33_0: Final = EngineRelease(
    engine="vllm",
    version="0.33.0",
    cache_modes=("none", "align"),  # vllm/config/cache.py:176
    hybrid_prefix_caching=True,  # vllm/engine/arg_utils.py:3045
)
REFERENCE: Final = EngineRelease(
    engine="staticfire",
    version="",
    cache_modes=("none", "align", "all"),  # `all` is known, and refused by a rule of its own
    hybrid_prefix_caching=True,
)

VLLM_RELEASES: Final = (VLLM_0_27_1, VLLM_0_28_0, VLLM_0_33_0)
"""From the oldest to the newest."""
NEWEST: Final = VLLM_RELEASES[-1]
RELEASES: Final = {release.name: release for release in (*VLLM_RELEASES, REFERENCE)}
"""Name -> release."""
