"""What a worker makes of its own copy of a resolved configuration. Pure arithmetic; imports no torch."""

from dataclasses import replace

from staticfire.engine.config.engine_config import EngineConfig, ResolvedConfig
from staticfire.engine.config.outcome import align_model, make_runtime, model_demand


def settle_worker(resolved: ResolvedConfig) -> EngineConfig:
    """Align the blocks to the recurrent states and count what fits the pool.

    A settled configuration settles to itself.

    Args:
        resolved: The worker's own copy of what the front end resolved.

    Returns:
        A new configuration with the run-time values; the argument is not changed.
    """
    model, cache, parallel = resolved.model, resolved.cache, resolved.parallel
    aligned = align_model(
        model.info,
        tensor_parallel_size=parallel.tensor_parallel_size,
        block_size=cache.block_size,
        mode=cache.mamba_cache_mode,
        mamba_block_size=cache.mamba_block_size,
        kv_cache_dtype=cache.cache_dtype,
        mamba_cache_dtype=cache.mamba_cache_dtype,
        mamba_ssm_cache_dtype=cache.mamba_ssm_cache_dtype,
    )
    need = model_demand(
        model.info,
        aligned,
        pipeline_parallel_size=parallel.pipeline_parallel_size,
        mode=cache.mamba_cache_mode,
        max_model_len=model.max_model_len,
    )
    blocks = cache.num_gpu_blocks_override or cache.kv_cache_memory_bytes // need.block_bytes
    return EngineConfig(
        model=model,
        cache=cache,
        scheduler=replace(resolved.scheduler, max_model_len=model.max_model_len),
        parallel=parallel,
        quantization=resolved.quantization,
        load=resolved.load,
        device=resolved.device,
        runtime=make_runtime(aligned, need, blocks, model.max_model_len),
    )
