"""What a worker makes of its own copy of a resolved configuration. Pure arithmetic; imports no torch."""

from dataclasses import replace

from staticfire.engine.config.engine_config import EngineConfig, ResolvedConfig
from staticfire.engine.config.outcome import align_model, fit_max_model_len, make_runtime, model_demand, span
from staticfire.engine.errors import EngineError


def settle_worker(resolved: ResolvedConfig) -> EngineConfig:
    """Align the blocks to the recurrent states, count what fits the pool, and fit the longest request to it if asked.

    A settled configuration settles to itself.

    Args:
        resolved: The worker's own copy of what the front end resolved.

    Returns:
        A new configuration with the run-time values; the argument is not changed.

    Raises:
        EngineError: The longest request is to be fitted, and not even one token fits.
    """
    model, cache, parallel = resolved.model, resolved.cache, resolved.parallel
    stages, mode = parallel.pipeline_parallel_size, cache.mamba_cache_mode
    aligned = align_model(
        model.info,
        tensor_parallel_size=parallel.tensor_parallel_size,
        block_size=cache.block_size,
        mode=mode,
        mamba_block_size=cache.mamba_block_size,
        kv_cache_dtype=cache.cache_dtype,
        mamba_cache_dtype=cache.mamba_cache_dtype,
        mamba_ssm_cache_dtype=cache.mamba_ssm_cache_dtype,
    )
    length = model.max_model_len
    need = model_demand(model.info, aligned, pipeline_parallel_size=stages, mode=mode, max_model_len=length)
    blocks = cache.num_gpu_blocks_override or cache.kv_cache_memory_bytes // need.block_bytes
    if model.fit_max_model_len:
        length = fit_max_model_len(
            model.info, aligned, pipeline_parallel_size=stages, mode=mode, num_gpu_blocks=blocks, longest=length
        )
        if not length:
            raise EngineError(f"max_model_len=-1: the pool of {blocks} blocks does not hold one request of 1 token")
        need = model_demand(model.info, aligned, pipeline_parallel_size=stages, mode=mode, max_model_len=length)
        aligned = span(aligned, enable_prefix_caching=cache.enable_prefix_caching, max_model_len=length)
    return EngineConfig(
        model=replace(model, max_model_len=length),
        cache=cache,
        scheduler=replace(resolved.scheduler, max_model_len=length),
        parallel=parallel,
        quantization=resolved.quantization,
        load=resolved.load,
        kernel=resolved.kernel,
        device=resolved.device,
        runtime=make_runtime(aligned, need, blocks, length),
    )
