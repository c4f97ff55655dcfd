"""Which run-time values cannot be said, because something typed changes them in a way that is not computed here."""

from collections.abc import Mapping

from staticfire.engine.config.alignment import DTYPE_BYTES
from staticfire.engine.config.chain import in_bytes
from staticfire.engine.config.draft import Draft
from staticfire.engine.config.options import KNOWN

PAGES = "block_size"
"""The run-time value on which all others rest."""
POOL = ("num_gpu_blocks", "num_groups", "max_model_len", "kv_cache_max_concurrency", "kv_cache_size_tokens")
"""The run-time values that rest on the size of the pool and on the layers that share it."""

FROM_MEMORY = ("num_gpu_blocks", "max_model_len", "kv_cache_max_concurrency", "kv_cache_size_tokens")
"""Those of them that the memory alone leaves open."""
STATE_DTYPE, POOL_BYTES = "cache.mamba_ssm_cache_dtype", "cache.kv_cache_memory_bytes"
"""Resolved values that may not be known, by their names in `Resolution.values`."""
PLAIN = frozenset({*DTYPE_BYTES, "fp8", "fp8_e4m3", "fp8_e5m2", "fp8_inc"})
"""Cache dtypes whose elements lie side by side, with nothing between them."""

NARROW = frozenset({"float16", "bfloat16"})
"""Dtypes of gated-delta states that an accelerated CPU kernel keeps where they are typed."""

MOVE_PAGES = frozenset(
    {
        "hf_overrides", "hf_config_path", "model_class_overrides", "runner", "convert", "mm_encoder_only",
        "disable_hybrid_kv_cache_manager", "kv_cache_dtype_skip_layers", "override_attention_dtype", "use_replayssm",
        "prefill_context_parallel_size", "decode_context_parallel_size", "scheduler_cls", "worker_cls",
    }
)  # fmt: skip
"""Keywords that change the layers, their dtypes or the states, and with them the pages."""
MOVE_POOL = frozenset(
    {
        "cpu_offload_gb", "offload_group_size", "kv_offloading_size", "enable_lora", "kv_transfer_config",
        "quantization_config", "kv_sharing_fast_prefill", "enable_mamba_shared_prefix_checkpoint",
        "worker_extension_cls",
    }
)  # fmt: skip
"""Keywords that change what the pool has or what a request takes of it, and leave the pages as they are."""


def runtime_unknown(unknown: Mapping[str, str]) -> dict[str, str]:
    """The part of what is not known that is about run-time values."""
    return {name: why for name, why in unknown.items() if "." not in name}


def _typed(draft: Draft, names: frozenset[str]) -> list[str]:
    return [name for name, value in draft.others.items() if name in names and not KNOWN[name].asks_for_nothing(value)]


def unknown_states(draft: Draft) -> dict[str, str]:
    """Why the dtype of recurrent states is not known; empty where it is."""
    release, dtype = draft.release, draft.mamba_ssm_cache_dtype
    if not release.wide_states_on_cpu or draft.device.type != "cpu" or dtype == "float32":
        return {}
    if draft.model.recurrent_kind == "gated_delta_net" and draft.typed.mamba_ssm_cache_dtype in NARROW:
        return {}
    return {
        STATE_DTYPE: f"{release.name} keeps recurrent states in float32 on a CPU with AVX-512 BF16, and in {dtype} on "
        "one without; --mamba-ssm-cache-dtype float32 settles it"
    }


def unknown_pages(draft: Draft) -> dict[str, str]:
    """Why the pages are not known; empty where they are."""
    states = unknown_states(draft)
    if states and draft.model.recurrent_layers:
        return {PAGES: states[STATE_DTYPE]}
    moved = _typed(draft, MOVE_PAGES)
    if draft.kv_cache_dtype not in PLAIN and draft.model.attention_layers:
        return {PAGES: f"{draft.kv_cache_dtype} packs keys and values with scales, which is not counted here"}
    if draft.speculation.tokens is None and draft.model.recurrent_layers:
        return {PAGES: "the number of speculative tokens is not typed, and every one lengthens a convolution state"}
    return {PAGES: f"{', '.join(moved)} may change it in a way that is not computed here"} if moved else {}


def unknown_pool(draft: Draft) -> dict[str, str]:
    """Why the pool and what fits into it are not known; empty where they are."""
    moved = _typed(draft, MOVE_POOL)
    if moved:
        return dict.fromkeys(POOL, f"{', '.join(moved)} may change it in a way that is not computed here")
    if draft.speculation.draft_layers:
        return dict.fromkeys(POOL, "the layers of the draft model share the pool, and are not counted here")
    if unknown_cpu_pool(draft):
        because = f"{draft.release.name} sizes the pool of a CPU by what the machine has free"
        return dict.fromkeys((*FROM_MEMORY, POOL_BYTES), because)
    return dict.fromkeys(FROM_MEMORY, _weights_reason(draft)) if only_weights(draft) else {}


def unknown_cpu_pool(draft: Draft) -> bool:
    """Whether the pool is a share of memory that nobody has told."""
    typed = draft.typed
    sized = typed.num_gpu_blocks_override is not None or typed.kv_cache_memory_bytes is not None
    return draft.device.type == "cpu" and draft.release.sizes_cpu_pool_by_free_memory and not sized


def only_weights(draft: Draft) -> bool:
    """Whether the pool is not known because what the weights leave is not, and for nothing else."""
    typed, moved = draft.typed, _typed(draft, MOVE_POOL) or draft.speculation.draft_layers
    from_memory = typed.num_gpu_blocks_override is None and typed.kv_cache_memory_bytes is None
    return from_memory and draft.device.type != "cpu" and not draft.weights.known and not moved


def _weights_reason(draft: Draft) -> str:
    found = draft.weights
    return f"the weights of one rank take {in_bytes(found.least)} to {in_bytes(found.most)}: {found.because}"
