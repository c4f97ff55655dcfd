"""From a resolved configuration to cache groups. Imports no torch."""

from staticfire.engine.cache.spec import AttentionSpec, CacheGroup, CacheLayout, MambaSpec
from staticfire.engine.config.capacity import group_size
from staticfire.engine.config.engine_config import EngineConfig


def plan_cache(config: EngineConfig) -> CacheLayout:
    """Plan the cache of one rank: which layers share a block table, and what a block holds.

    Every block of every group is one page of `config.runtime.page_size_bytes` a layer, so one pool serves all.

    Args:
        config: An accepted configuration; its run-time block size is already aligned.

    Raises:
        ValueError: A page does not hold what its group puts there, or the model has no layer that caches anything.
    """
    info = config.model.info
    attention, recurrent = info.attention_layers, info.recurrent_layers
    if not attention and not recurrent:
        raise ValueError(f"{info.name}: no layer keeps keys and values or a recurrent state")
    size = group_size(len(attention), len(recurrent))
    groups = [CacheGroup(layers, _attention_spec(config)) for layers in _cut(attention, size)]
    groups += [CacheGroup(layers, _mamba_spec(config)) for layers in _cut(recurrent, size)]
    return CacheLayout(
        groups=tuple(groups),
        num_blocks=config.runtime.num_gpu_blocks,
        num_tensors=max(len(group.layers) for group in groups),
        page_size_bytes=config.runtime.page_size_bytes,
    )


def _cut(layers: tuple[int, ...], size: int) -> list[tuple[int, ...]]:
    """Cut layers into groups of `size`; the last one may be shorter and leaves its pages of the pool unused."""
    return [layers[start : start + size] for start in range(0, len(layers), size)]


def _attention_spec(config: EngineConfig) -> AttentionSpec:
    info, runtime = config.model.info, config.runtime
    content = runtime.block_size * runtime.attention_bytes_per_token
    if content > runtime.page_size_bytes:
        raise ValueError(f"an attention block of {content} bytes does not fit a page of {runtime.page_size_bytes}")
    return AttentionSpec(
        block_size=runtime.block_size,
        num_kv_heads=max(1, info.num_kv_heads // config.parallel.tensor_parallel_size),
        head_size=info.head_dim,
        dtype=_or(config.cache.cache_dtype, config.model.dtype),
        page_size_bytes=runtime.page_size_bytes,
    )


def _mamba_spec(config: EngineConfig) -> MambaSpec:
    info, runtime, mode = config.model.info, config.runtime, config.cache.mamba_cache_mode
    if info.state_shapes is None:
        raise ValueError(f"{info.name}: recurrent layers of unknown state shapes")
    if mode == "all":
        raise ValueError("mamba_cache_mode='all': the reference engine keeps states in modes none and align")
    if runtime.state_bytes > runtime.page_size_bytes:
        raise ValueError(f"a state of {runtime.state_bytes} bytes does not fit a page of {runtime.page_size_bytes}")
    states = info.state_shapes(config.parallel.tensor_parallel_size, 0)
    conv_dtype = _or(config.cache.mamba_cache_dtype, config.model.dtype)
    dtypes = {"conv": conv_dtype, "ssm": _or(config.cache.mamba_ssm_cache_dtype, conv_dtype)}
    return MambaSpec(
        block_size=runtime.mamba_block_size or config.model.max_model_len,
        shapes=tuple(state.shape for state in states),
        dtypes=tuple(dtypes[state.role] for state in states),
        mode=mode,
        page_size_bytes=runtime.page_size_bytes,
    )


def _or(dtype: str, otherwise: str) -> str:
    return otherwise if dtype == "auto" else dtype
