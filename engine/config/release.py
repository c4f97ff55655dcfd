"""The release of an engine that a configuration is judged for, as a plain value, and the facts that differ by release.

A rule or the arithmetic asks a fact (`release.cache_modes`), never a version number. A new fact is one attribute here,
with a value in each entry of the table and the source line that says so.

`REFERENCE` is the engine of this package, the only one that is ever run from here: `accept`, `start`, `sync` and the
matrices resolve for it. The releases of vLLM are imitated: `explain` and the comparison with an installed engine
resolve for them, and nothing is started from what comes of it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

NO_FLOAT64: Final[Mapping[str, frozenset[str]]] = {
    "dtype": frozenset({"float64"}),
    "kv_cache_dtype": frozenset({"float32", "float64"}),
    "mamba_cache_dtype": frozenset({"float64"}),
    "mamba_ssm_cache_dtype": frozenset({"float64"}),
}
"""What every release of vLLM lacks: ModelDType of vllm/config/model.py, CacheDType and MambaDType of cache.py."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineRelease:
    """One release of an engine by its facts.

    Attributes:
        engine: Whose release it is.
        version: Its version; empty for the engine of this package.
        cache_modes: Values of `mamba_cache_mode` that it knows.
        hybrid_prefix_caching: Whether prefix caching is on by default for a model with attention and recurrent layers.
        refuses_idle_options: Whether an option that can have no effect beside the others is refused.
        budget_follows_sequences: Whether a token budget that nobody typed is raised to the number of sequences.
        rank_needs_external_balancing: Whether a typed rank is refused where external balancing is turned off; else the
            rank alone means external balancing.
        external_balancing_needs_experts: Whether external balancing over several engines is refused without experts.
        graph_takes_a_state_block_each: Whether captured decoding steps are refused where there are fewer blocks than
            sequences, each of which has a state.
        plain_kv_dtype_is_the_models: Whether an unquantized cache dtype other than the model's is refused.
        lacks: Keyword -> names that our catalogue has and this release does not.
        removed: Architecture that it refuses -> the last release that had it.
        generic: Architectures for which it has no class of their own and takes a generic one.
    """

    engine: Literal["vllm", "staticfire"]
    version: str
    cache_modes: tuple[str, ...]
    hybrid_prefix_caching: bool
    refuses_idle_options: bool
    budget_follows_sequences: bool
    rank_needs_external_balancing: bool
    external_balancing_needs_experts: bool
    graph_takes_a_state_block_each: bool
    plain_kv_dtype_is_the_models: bool
    lacks: Mapping[str, frozenset[str]] = field(default_factory=dict)
    removed: Mapping[str, str] = field(default_factory=dict)
    generic: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        """What a user types: `vllm==0.33.0`, or `reference` for the engine of this package."""
        return f"{self.engine}=={self.version}" if self.engine == "vllm" else "reference"


VLLM_0_27_1: Final = EngineRelease(
    engine="vllm",
    version="0.27.1",
    cache_modes=("none", "align", "all"),  # vllm/config/cache.py: MambaCacheMode
    hybrid_prefix_caching=False,  # vllm/engine/arg_utils.py: "supported and not hybrid"
    refuses_idle_options=False,  # nothing looks at them
    budget_follows_sequences=False,  # vllm/engine/arg_utils.py: _set_default_max_num_seqs_and_batched_tokens_args
    rank_needs_external_balancing=False,  # vllm/engine/arg_utils.py: a rank alone means external balancing
    external_balancing_needs_experts=True,  # vllm/engine/arg_utils.py: create_engine_config
    graph_takes_a_state_block_each=True,  # vllm/config/compilation.py: resolve_cudagraph_mode_and_sizes
    plain_kv_dtype_is_the_models=False,
    lacks=NO_FLOAT64,
    removed={"BambaForCausalLM": "0.23.0"},  # vllm/model_executor/models/registry.py:761
)
VLLM_0_28_0: Final = EngineRelease(
    engine="vllm",
    version="0.28.0",
    cache_modes=("none", "align", "all"),  # vllm/config/cache.py:39
    hybrid_prefix_caching=True,  # vllm/engine/arg_utils.py:2650
    refuses_idle_options=False,  # nothing looks at them
    budget_follows_sequences=False,  # vllm/engine/arg_utils.py: _set_default_max_num_seqs_and_batched_tokens_args
    rank_needs_external_balancing=False,  # vllm/engine/arg_utils.py: a rank alone means external balancing
    external_balancing_needs_experts=True,  # vllm/engine/arg_utils.py: create_engine_config
    graph_takes_a_state_block_each=True,  # vllm/config/compilation.py: resolve_cudagraph_mode_and_sizes
    plain_kv_dtype_is_the_models=False,
    lacks=NO_FLOAT64,
    removed={"BambaForCausalLM": "0.23.0"},  # vllm/model_executor/models/registry.py:784
)
VLLM_0_33_0: Final = EngineRelease(
    engine="vllm",
    version="0.33.0",
    cache_modes=("none", "align"),  # vllm/config/cache.py:176
    hybrid_prefix_caching=True,  # vllm/engine/arg_utils.py:3045
    refuses_idle_options=False,  # nothing looks at them
    budget_follows_sequences=False,  # vllm/engine/arg_utils.py: _set_default_max_num_seqs_and_batched_tokens_args
    rank_needs_external_balancing=False,  # vllm/engine/arg_utils.py: a rank alone means external balancing
    external_balancing_needs_experts=True,  # vllm/engine/arg_utils.py: create_engine_config
    graph_takes_a_state_block_each=True,  # vllm/config/compilation.py: resolve_cudagraph_mode_and_sizes
    plain_kv_dtype_is_the_models=True,
    lacks=NO_FLOAT64,
    generic=frozenset({"BambaForCausalLM"}),  # vllm/model_executor/models/registry.py: TransformersForCausalLM
)
REFERENCE: Final = EngineRelease(
    engine="staticfire",
    version="",
    cache_modes=("none", "align", "all"),  # `all` is known, and refused by a rule of its own
    hybrid_prefix_caching=True,
    refuses_idle_options=True,
    budget_follows_sequences=True,
    rank_needs_external_balancing=True,
    external_balancing_needs_experts=False,
    graph_takes_a_state_block_each=False,  # it captures no graphs: a sequence without a block waits for one
    plain_kv_dtype_is_the_models=True,
)

VLLM_RELEASES: Final = (VLLM_0_27_1, VLLM_0_28_0, VLLM_0_33_0)
"""From the oldest to the newest."""
NEWEST: Final = VLLM_RELEASES[-1]
RELEASES: Final = {release.name: release for release in (*VLLM_RELEASES, REFERENCE)}
"""Name -> release."""
