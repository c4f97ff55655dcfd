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

from staticfire.engine.config.model import RecurrentKind

NO_FLOAT64: Final[Mapping[str, frozenset[str]]] = {
    "dtype": frozenset({"float64"}),
    "kv_cache_dtype": frozenset({"float32", "float64"}),
    "mamba_cache_dtype": frozenset({"float64"}),
    "mamba_ssm_cache_dtype": frozenset({"float64"}),
}
"""What every release of vLLM lacks: ModelDType of vllm/config/model.py, CacheDType and MambaDType of cache.py."""
MAMBA: Final[frozenset[RecurrentKind]] = frozenset({"mamba1", "mamba2"})
UNAWARE: Final = frozenset({"falcon_h1", "granitemoehybrid"})


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
        keeps_null_block_free: Whether the pool must hold one request beside the null block, not with it.
        lacks: Keyword -> names that our catalogue has and this release does not.
        removed: Architecture that it refuses -> the last release that had it.
        generic: Architectures for which it has no class of their own and takes a generic one.
        heeds_cache_mode: Whether a typed `mamba_cache_mode` is looked at; if not, it is derived whatever was typed.
        mode_all_by_default: Whether prefix caching means mode `all` where the state's kernel has it, else `align`.
        mode_all_kinds: Recurrent kinds whose kernels store a state at every block; others fall back to `align`.
        narrows_float32: Whether a checkpoint that declares float32, or nothing, is computed in the first dtype of the
            device, as is one whose declared dtype the device lacks.
        cpu_blocks: On a CPU, tokens of the smallest block of the attention kernel, and of a block by default.
        wide_head_block: Tokens in a page of the kernel that FLASH_ATTN has for heads of 256 on compute capability
            10.x and 11.x; None where it has none of its own.
        state_export_step: Tokens to whose multiples the blocks of a gated-delta model are bound in mode `align`, where
            FlashInfer's kernel computes its prefill; None where nothing binds them.
        rounds_to_kernel_blocks: Whether an aligned block is made a multiple of the kernel's smallest block. Without it
            a typed block size that the kernel's does not divide is only multiplied.
        wide_states_on_cpu: Whether it keeps recurrent states in float32 on a CPU with AVX-512 BF16, whatever was typed
            but for 16-bit states of gated-delta layers.
        states_without_speculation: Model types whose states it sizes as if no token were guessed.
        realigns_cpu_blocks: Whether a block size typed for a hybrid model on a CPU is only a step.
        front_end_sizes_cpu_blocks: Whether the front end already takes the default block of a CPU.
        sizes_cpu_pool_by_free_memory: Whether the default pool on a CPU is a share of what the machine has free.
        has_stages: Whether it spreads layers over pipeline stages.
        engines_need_processes: Whether several engines are refused where processes are turned off.
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
    keeps_null_block_free: bool
    lacks: Mapping[str, frozenset[str]] = field(default_factory=dict)
    removed: Mapping[str, str] = field(default_factory=dict)
    generic: frozenset[str] = frozenset()
    heeds_cache_mode: bool
    mode_all_by_default: bool
    mode_all_kinds: frozenset[RecurrentKind]
    narrows_float32: bool
    cpu_blocks: tuple[int, int]
    wide_head_block: int | None
    state_export_step: int | None
    rounds_to_kernel_blocks: bool
    wide_states_on_cpu: bool = False
    states_without_speculation: frozenset[str] = frozenset()
    realigns_cpu_blocks: bool = True
    front_end_sizes_cpu_blocks: bool = False
    sizes_cpu_pool_by_free_memory: bool = True
    has_stages: bool = True
    engines_need_processes: bool = False

    @property
    def name(self) -> str:
        """What a user types: `vllm==0.33.0`, or `reference` for the engine of this package."""
        return f"{self.engine}=={self.version}" if self.engine == "vllm" else "reference"


VLLM_0_27_1: Final = EngineRelease(
    engine="vllm",
    version="0.27.1",
    cache_modes=("none", "align", "all"),  # vllm/config/cache.py: MambaCacheMode
    refuses_idle_options=False,  # nothing looks at them
    budget_follows_sequences=False,  # vllm/engine/arg_utils.py: _set_default_max_num_seqs_and_batched_tokens_args
    rank_needs_external_balancing=False,  # vllm/engine/arg_utils.py: a rank alone means external balancing
    external_balancing_needs_experts=True,  # vllm/engine/arg_utils.py: create_engine_config
    graph_takes_a_state_block_each=True,  # vllm/config/compilation.py: resolve_cudagraph_mode_and_sizes
    plain_kv_dtype_is_the_models=False,
    keeps_null_block_free=False,  # vllm/v1/core/kv_cache_utils.py: all of the memory counts
    lacks=NO_FLOAT64,
    removed={"BambaForCausalLM": "0.23.0"},  # vllm/model_executor/models/registry.py:761
    hybrid_prefix_caching=False,  # vllm/engine/arg_utils.py:2604: supported and not hybrid
    heeds_cache_mode=True,  # vllm/engine/arg_utils.py:1971
    mode_all_by_default=True,  # vllm/model_executor/models/config.py:614-617
    mode_all_kinds=MAMBA,  # SupportsMambaPrefixCaching of the model classes; gated-delta models lack it
    narrows_float32=True,  # vllm/config/model.py: _resolve_auto_dtype
    cpu_blocks=(16, 128),  # vllm/v1/attention/backends/cpu_attn.py:56, vllm/platforms/cpu.py
    front_end_sizes_cpu_blocks=True,  # vllm/platforms/cpu.py: check_and_update_config
    wide_head_block=None,
    state_export_step=None,
    rounds_to_kernel_blocks=False,
    states_without_speculation=UNAWARE,
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
    keeps_null_block_free=False,  # vllm/v1/core/kv_cache_utils.py: all of the memory counts
    lacks=NO_FLOAT64,
    removed={"BambaForCausalLM": "0.23.0"},  # vllm/model_executor/models/registry.py:784
    heeds_cache_mode=True,  # vllm/engine/arg_utils.py:2010
    mode_all_by_default=False,  # vllm/model_executor/models/config.py:603-604
    mode_all_kinds=MAMBA,  # vllm/model_executor/models/config.py:611-620
    narrows_float32=True,  # vllm/config/model.py: _resolve_auto_dtype
    cpu_blocks=(16, 128),  # vllm/v1/attention/backends/cpu_attn.py:62, vllm/platforms/cpu.py:148
    front_end_sizes_cpu_blocks=True,  # vllm/platforms/cpu.py:149
    wide_head_block=None,  # vllm/v1/attention/backends/flash_attn.py:88: multiples of 16 for every head
    state_export_step=None,
    rounds_to_kernel_blocks=False,  # vllm/platforms/interface.py: _align_hybrid_block_size
    states_without_speculation=UNAWARE,  # get_mamba_state_shape_from_config of both classes passes no num_spec
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
    keeps_null_block_free=True,  # vllm/v1/core/kv_cache_planning.py:1533
    lacks=NO_FLOAT64,
    generic=frozenset({"BambaForCausalLM"}),  # vllm/model_executor/models/registry.py: TransformersForCausalLM
    heeds_cache_mode=False,  # vllm/engine/arg_utils.py:2304: a warning, and the value goes no further
    mode_all_by_default=False,
    mode_all_kinds=frozenset(),
    narrows_float32=True,  # vllm/config/model.py:2440
    cpu_blocks=(32, 128),  # vllm/v1/attention/backends/cpu_attn.py:66, vllm/platforms/cpu.py:563
    wide_head_block=128,  # vllm/v1/attention/backends/flash_attn.py:330-366, fa_utils.py:224
    state_export_step=64,  # vllm/v1/attention/backends/gdn_attn.py:34, platforms/interface.py:1089-1094
    rounds_to_kernel_blocks=True,  # vllm/platforms/interface.py:1100-1104
    wide_states_on_cpu=True,  # vllm/platforms/cpu.py:318-338
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
    keeps_null_block_free=True,  # one request alone must be able to finish
    heeds_cache_mode=True,
    mode_all_by_default=False,
    mode_all_kinds=MAMBA,
    narrows_float32=False,  # a checkpoint in float32 is computed in float32: results are compared with transformers'
    cpu_blocks=(16, 16),  # one kernel for every device
    wide_head_block=None,
    state_export_step=None,
    rounds_to_kernel_blocks=True,
    realigns_cpu_blocks=False,
    sizes_cpu_pool_by_free_memory=False,
    has_stages=False,
    engines_need_processes=True,
)

VLLM_RELEASES: Final = (VLLM_0_27_1, VLLM_0_28_0, VLLM_0_33_0)
"""From the oldest to the newest."""
NEWEST: Final = VLLM_RELEASES[-1]
RELEASES: Final = {release.name: release for release in (*VLLM_RELEASES, REFERENCE)}
"""Name -> release."""
