"""Settle the section `cache`: prefix caching, cache mode, block sizes and dtypes as the front end sees them."""

from typing import Final

from staticfire.engine.config.draft import Draft
from staticfire.engine.config.resolution import Value

CACHING, MODE, BLOCK, MAMBA_BLOCK = (
    "cache.enable_prefix_caching",
    "cache.mamba_cache_mode",
    "cache.block_size",
    "cache.mamba_block_size",
)
CONV, SSM, KV = "cache.mamba_cache_dtype", "cache.mamba_ssm_cache_dtype", "cache.cache_dtype"
HYBRID, DTYPE, LENGTH = "model.is_hybrid", "model.dtype", "model.max_model_len"
DEFAULT_BLOCK_SIZE: Final = 16
AUTO: Final = (None, "auto")


def settle_cache(draft: Draft) -> None:
    """Settle caching, then the mode (which caching decides), then sizes and dtypes."""
    _settle_caching(draft)
    _settle_mode(draft)
    draft.block_size = draft.plain(BLOCK, _default_block(draft))
    _settle_mamba_block_size(draft)
    _settle_dtypes(draft)
    draft.num_gpu_blocks_override = draft.plain("cache.num_gpu_blocks_override", Value(None, "default"))
    draft.gpu_memory_utilization = draft.plain("cache.gpu_memory_utilization", Value(0.92, "default"))


def _default_block(draft: Draft) -> Value:
    if draft.device.type != "cpu" or not draft.release.front_end_sizes_cpu_blocks:
        return Value(DEFAULT_BLOCK_SIZE, "default")
    _, preferred = draft.release.cpu_blocks
    return Value(preferred, "derived", f"{draft.release.name} takes blocks of {preferred} tokens on a CPU")


def _settle_caching(draft: Draft) -> None:
    typed = draft.typed.enable_prefix_caching
    if typed is not None:
        draft.enable_prefix_caching = draft.keep(CACHING, typed)
    elif draft.model.is_hybrid and not draft.release.hybrid_prefix_caching:
        because = f"{draft.release.name} caches no prefixes of a hybrid model unless asked to"
        draft.enable_prefix_caching = draft.derive(CACHING, False, because, HYBRID)
    elif draft.model.attention_layers:
        draft.enable_prefix_caching = True
        draft.values[CACHING] = Value(True, "default")
    else:
        because = "a model without attention layers caches no prefixes unless asked to"
        draft.enable_prefix_caching = draft.derive(CACHING, False, because, HYBRID)


def _settle_mode(draft: Draft) -> None:
    """Mode `align` follows from caching; without caching there is no mode but `none`."""
    model, release = draft.model, draft.release
    typed = draft.typed.mamba_cache_mode if release.heeds_cache_mode else None
    if not model.recurrent_layers:
        draft.mamba_cache_mode = draft.derive(MODE, "none", "the model has no recurrent layers", HYBRID)
    elif not draft.enable_prefix_caching:
        if typed == "none":
            draft.mamba_cache_mode = draft.keep(MODE, typed)
        else:
            because = "prefix caching is off, so no state is kept for reuse"
            draft.mamba_cache_mode = draft.derive(MODE, "none", because, CACHING)
    elif typed in (None, "none"):
        kind = "the model is hybrid" if model.is_hybrid else "the model has recurrent layers"
        mode = "all" if release.mode_all_by_default and model.recurrent_kind in release.mode_all_kinds else "align"
        draft.mamba_cache_mode = draft.derive(MODE, mode, f"{kind} and prefix caching is on", HYBRID, CACHING)
    elif typed == "all" and model.recurrent_kind not in release.mode_all_kinds:
        because = f"{release.name} has no mode all for {model.recurrent_kind} layers"
        draft.mamba_cache_mode = draft.derive(MODE, "align", because, HYBRID, CACHING)
    else:
        draft.mamba_cache_mode = draft.keep(MODE, typed)


def _settle_mamba_block_size(draft: Draft) -> None:
    typed = draft.typed.mamba_block_size
    if typed is not None:
        draft.mamba_block_size = draft.keep(MAMBA_BLOCK, typed)
    elif not draft.model.recurrent_layers:
        draft.mamba_block_size = None
        draft.values[MAMBA_BLOCK] = Value(None, "default")
    elif draft.enable_prefix_caching:
        because = "states are cached at block boundaries"
        draft.mamba_block_size = draft.derive(
            MAMBA_BLOCK, draft.typed.block_size or DEFAULT_BLOCK_SIZE, because, BLOCK, CACHING
        )
    else:
        because = "without prefix caching one state serves a request of any length"
        draft.mamba_block_size = draft.derive(MAMBA_BLOCK, draft.max_model_len, because, LENGTH, CACHING)


def _settle_dtypes(draft: Draft) -> None:
    typed, model, dtype = draft.typed, draft.model, draft.dtype
    quantized = model.quantization
    if typed.kv_cache_dtype in AUTO and quantized is not None and quantized.kv_cache_dtype is not None:
        because = f"the checkpoint asks for it ({quantized.said_by}, {quantized.method})"
        draft.kv_cache_dtype = draft.derive(KV, quantized.kv_cache_dtype, because)
    elif typed.kv_cache_dtype in AUTO:
        draft.kv_cache_dtype = draft.derive(KV, dtype, "keys and values keep the model's dtype", DTYPE)
    else:
        draft.kv_cache_dtype = draft.keep(KV, typed.kv_cache_dtype)
    if typed.mamba_cache_dtype in AUTO:
        draft.mamba_cache_dtype = draft.derive(CONV, dtype, "convolution states keep the model's dtype", DTYPE)
    else:
        draft.mamba_cache_dtype = draft.keep(CONV, typed.mamba_cache_dtype)
    if typed.mamba_ssm_cache_dtype not in AUTO:
        draft.mamba_ssm_cache_dtype = draft.keep(SSM, typed.mamba_ssm_cache_dtype)
    elif model.ssm_dtype is not None and dtype != "float64":
        because = model.ssm_dtype_because or "config.json declares it"
        draft.mamba_ssm_cache_dtype = draft.derive(SSM, model.ssm_dtype, because)
    else:
        because = "recurrent states follow mamba_cache_dtype"
        draft.mamba_ssm_cache_dtype = draft.derive(SSM, draft.mamba_cache_dtype, because, CONV)
