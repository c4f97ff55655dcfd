"""The worker's arithmetic on a whole model: aligned pages, blocks a request takes, run-time values.

Pure functions of plain values. `resolve` predicts with them, the worker settles with them (`worker/settle.py`).
"""

from dataclasses import replace
from typing import Final

from staticfire.engine.config.alignment import (
    Alignment,
    align,
    attention_bytes_per_token,
    kv_dtype_bytes,
    state_bytes,
)
from staticfire.engine.config.capacity import Demand, demand
from staticfire.engine.config.engine_config import MambaCacheMode, Runtime
from staticfire.engine.config.kernel_blocks import USUAL, KernelBlocks
from staticfire.engine.config.model import ModelInfo

NULL_BLOCKS: Final = 1


def align_model(
    model: ModelInfo,
    *,
    tensor_parallel_size: int,
    block_size: int,
    mode: MambaCacheMode,
    mamba_block_size: int | None,
    kv_cache_dtype: str,
    mamba_cache_dtype: str,
    mamba_ssm_cache_dtype: str,
    chunk_size: int | None = None,
    num_speculative_tokens: int = 0,
    kernel: KernelBlocks = USUAL,
    rounds_to_kernel_blocks: bool = True,
) -> Alignment:
    """Align the pages of one rank; see `alignment.align`. What is left out is as the reference engine has it."""
    shapes = model.state_shapes(tensor_parallel_size, num_speculative_tokens) if model.state_shapes else ()
    attention = 0
    if model.attention_layers:
        attention = attention_bytes_per_token(
            model.num_kv_heads, model.head_dim, tensor_parallel_size, kv_dtype_bytes(kv_cache_dtype)
        )
    return align(
        attention_bytes=attention,
        state_bytes=state_bytes(shapes, mamba_cache_dtype, mamba_ssm_cache_dtype),
        block_size=block_size,
        mode=mode,
        mamba_block_size=mamba_block_size,
        kernel_block_size=kernel.smallest,
        export_step=kernel.export_step,
        rounds_to_kernel_blocks=rounds_to_kernel_blocks,
        chunk_size=chunk_size or model.chunk_size,
    )


def model_demand(
    model: ModelInfo,
    aligned: Alignment,
    *,
    pipeline_parallel_size: int,
    mode: MambaCacheMode,
    max_model_len: int,
    num_speculative_tokens: int = 0,
) -> Demand:
    """What one request of `max_model_len` tokens takes from the pool of a rank of the first pipeline stage."""
    attention_layers, recurrent_layers = _stage(model, pipeline_parallel_size)
    return demand(
        attention_layers=attention_layers,
        recurrent_layers=recurrent_layers,
        max_model_len=max_model_len,
        block_size=aligned.block_size,
        mamba_block_size=aligned.mamba_block_size,
        mode=mode,
        page_size_bytes=aligned.page_size_bytes,
        num_speculative_tokens=num_speculative_tokens,
    )


def fit_max_model_len(
    model: ModelInfo,
    aligned: Alignment,
    *,
    pipeline_parallel_size: int,
    mode: MambaCacheMode,
    num_gpu_blocks: int,
    longest: int,
    num_speculative_tokens: int = 0,
) -> int:
    """Fit the longest request to the pool.

    Returns:
        The largest number of tokens, up to `longest`, of which one request fits beside the null block; 0 if none does.
    """
    low, high = 0, longest
    while low < high:
        middle = (low + high + 1) // 2
        need = model_demand(
            model,
            aligned,
            pipeline_parallel_size=pipeline_parallel_size,
            mode=mode,
            max_model_len=middle,
            num_speculative_tokens=num_speculative_tokens,
        )
        if need.blocks <= num_gpu_blocks - NULL_BLOCKS:
            low = middle
        else:
            high = middle - 1
    return low


def span(aligned: Alignment, *, enable_prefix_caching: bool, max_model_len: int) -> Alignment:
    """Follow a fitted length: where nothing is cached, one state serves a whole request, and so spans the longest."""
    if enable_prefix_caching or aligned.mamba_block_size is None:
        return aligned
    return replace(aligned, mamba_block_size=max_model_len)


def _stage(model: ModelInfo, stages: int) -> tuple[int, int]:
    """Attention and recurrent layers of the first pipeline stage, which is never the smaller one."""
    if stages == 1:
        return len(model.attention_layers), len(model.recurrent_layers)
    last = -(-len(model.layers) // stages)
    attention = sum(i < last for i in model.attention_layers)
    recurrent = sum(i < last for i in model.recurrent_layers)
    return (attention, recurrent) if attention or recurrent else (1, 0)


def make_runtime(aligned: Alignment, need: Demand, num_gpu_blocks: int, max_model_len: int) -> Runtime:
    """Freeze the run-time values; `need` is that of a request of `max_model_len` tokens."""
    concurrency = max(0, num_gpu_blocks - NULL_BLOCKS) / need.blocks
    return Runtime(
        block_size=aligned.block_size,
        mamba_block_size=aligned.mamba_block_size,
        kernel_block_size=aligned.step,
        attention_bytes_per_token=aligned.attention_bytes,
        state_bytes=aligned.state_bytes,
        page_size_bytes=aligned.page_size_bytes,
        mamba_page_size_padded=aligned.padded,
        num_gpu_blocks=num_gpu_blocks,
        num_groups=need.num_groups,
        max_model_len=max_model_len,
        kv_cache_max_concurrency=concurrency,
        kv_cache_size_tokens=int(concurrency * max_model_len),
    )
