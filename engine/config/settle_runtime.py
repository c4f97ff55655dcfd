"""What the worker will make of the settled values, as far as it can be foreseen: aligned blocks, pool, concurrency."""

from typing import Final

from staticfire.engine.config.capacity import Demand
from staticfire.engine.config.chain import in_bytes
from staticfire.engine.config.draft import Draft
from staticfire.engine.config.engine_config import Runtime
from staticfire.engine.config.kernel_blocks import kernel_blocks
from staticfire.engine.config.outcome import (
    NULL_BLOCKS,
    align_model,
    fit_max_model_len,
    make_runtime,
    model_demand,
    span,
)
from staticfire.engine.config.speculation import read_speculation
from staticfire.engine.config.unknown import unknown_pages, unknown_pool, unknown_states
from staticfire.engine.config.weights import weights

CPU_POOL_BYTES: Final = 2**30
"""Default pool on a CPU, where every sequence at full length would take more; pages are zeroed when first used."""

MEMORY, OVERRIDE = "cache.kv_cache_memory_bytes", "cache.num_gpu_blocks_override"


def settle_runtime(draft: Draft) -> None:
    """Align, count, and size the pool."""
    draft.speculation = read_speculation(draft.others)
    draft.kernel_blocks = kernel_blocks(
        draft.release,
        draft.device,
        draft.model,
        dtype=draft.dtype,
        kv_cache_dtype=draft.kv_cache_dtype,
        block_size=draft.typed.block_size,
        mode=draft.mamba_cache_mode,
        others=draft.others,
    )
    draft.weights = weights(draft)
    draft.unknown = {**unknown_states(draft), **unknown_pages(draft), **unknown_pool(draft)}
    draft.alignment = align_model(
        draft.model,
        tensor_parallel_size=draft.tensor_parallel_size,
        block_size=draft.typed.block_size or max(draft.block_size, draft.kernel_blocks.preferred),
        mode=draft.mamba_cache_mode,
        mamba_block_size=draft.mamba_block_size,
        kv_cache_dtype=draft.kv_cache_dtype,
        mamba_cache_dtype=draft.mamba_cache_dtype,
        mamba_ssm_cache_dtype=draft.mamba_ssm_cache_dtype,
        chunk_size=draft.typed.mamba_block_size,
        num_speculative_tokens=draft.state_tokens,
        kernel=draft.kernel_blocks,
        rounds_to_kernel_blocks=draft.release.rounds_to_kernel_blocks,
    )
    draft.demand = _demand(draft, draft.max_model_len)
    _settle_pool(draft)
    draft.fitted_max_model_len = draft.max_model_len
    if draft.fit_max_model_len:
        _fit(draft)


def _demand(draft: Draft, max_model_len: int) -> Demand:
    return model_demand(
        draft.model,
        draft.alignment,
        pipeline_parallel_size=draft.pipeline_parallel_size,
        mode=draft.mamba_cache_mode,
        max_model_len=max_model_len,
        num_speculative_tokens=draft.speculation.tokens or 0,
    )


def _fit(draft: Draft) -> None:
    """Lower the length to what the pool holds; where it holds nothing, a rule says so of one token."""
    length = fit_max_model_len(
        draft.model,
        draft.alignment,
        pipeline_parallel_size=draft.pipeline_parallel_size,
        mode=draft.mamba_cache_mode,
        num_gpu_blocks=draft.num_gpu_blocks,
        longest=draft.max_model_len,
        num_speculative_tokens=draft.speculation.tokens or 0,
    )
    draft.fitted_max_model_len = max(1, length)
    draft.demand = _demand(draft, draft.fitted_max_model_len)
    draft.alignment = span(
        draft.alignment,
        enable_prefix_caching=draft.enable_prefix_caching,
        max_model_len=draft.fitted_max_model_len,
    )


def _settle_pool(draft: Draft) -> None:
    """Blocks come from the override, else from the memory: typed, or what the device leaves."""
    block_bytes, typed = draft.demand.block_bytes, draft.typed.kv_cache_memory_bytes
    if typed is not None:
        memory = draft.keep(MEMORY, typed)
    elif draft.num_gpu_blocks_override is not None:
        size = draft.num_gpu_blocks_override * block_bytes
        memory = draft.derive(MEMORY, size, "num_gpu_blocks_override blocks take it", OVERRIDE)
    elif draft.device.type == "cpu":
        memory = _cpu_default(draft)
    else:
        memory = _device_default(draft)
    draft.kv_cache_memory_bytes = memory
    draft.num_gpu_blocks = draft.num_gpu_blocks_override or memory // block_bytes


def _cpu_default(draft: Draft) -> int:
    need = draft.demand
    one = 0 if draft.fit_max_model_len else need.blocks + NULL_BLOCKS
    everything = draft.max_num_seqs * need.blocks + NULL_BLOCKS
    blocks = min(everything, max(one, CPU_POOL_BYTES // need.block_bytes))
    if blocks == everything:
        because = "max_num_seqs sequences of max_model_len tokens need no more"
    elif blocks == one:
        because = "one sequence of max_model_len tokens needs it"
    else:
        because = "the default on a CPU is 1 GiB, zeroed page by page as it is used"
    parents = ("scheduler.max_num_seqs", "model.max_model_len", "cache.block_size")
    memory: int = draft.derive(MEMORY, blocks * need.block_bytes, because, *parents)
    return memory


def _device_default(draft: Draft) -> int:
    device, share = draft.device, draft.gpu_memory_utilization
    found = draft.weights
    left = max(0, int(device.memory_bytes * share) - found.least)
    told = f"about {in_bytes(found.least)}" if found.known else f"{in_bytes(found.least)} to {in_bytes(found.most)}"
    because = (
        f"{share:g} of {device.name}'s {in_bytes(device.memory_bytes)}, less {told} of weights a rank "
        f"({'counted from the shapes' if found.known else found.because}; activations not counted)"
    )
    if not found.known:
        because = f"at most, {because}"
    memory: int = draft.derive(
        MEMORY, left, because, "cache.gpu_memory_utilization", "model.dtype", "parallel.tensor_parallel_size"
    )
    return memory


def runtime(draft: Draft) -> Runtime:
    """The frozen run-time values."""
    return make_runtime(draft.alignment, draft.demand, draft.num_gpu_blocks, draft.fitted_max_model_len)
