"""SF105: every accepted request must be able to finish."""

from collections.abc import Iterable, Mapping
from typing import Any

from staticfire.engine.config.draft import Draft
from staticfire.engine.config.outcome import NULL_BLOCKS
from staticfire.engine.config.rules.base import Example, Rule


def check(draft: Draft) -> str | None:
    """Refuse a pool that one request of `max_model_len` tokens overflows."""
    need, usable = draft.demand.blocks, draft.num_gpu_blocks - NULL_BLOCKS * draft.release.keeps_null_block_free
    if usable >= need or draft.kv_cache_memory_bytes == 0:
        return None
    request = f"one request of max_model_len={draft.max_model_len} tokens"
    if draft.fit_max_model_len:
        request = "max_model_len=-1 fits nothing: one request of 1 token"
    beside = " besides the null block" if draft.release.keeps_null_block_free else ""
    return (
        f"{request} needs {need} blocks of "
        f"{draft.alignment.block_size} tokens, but the pool has {max(0, usable)}{beside}"
    )


def proposals(draft: Draft) -> Iterable[Mapping[str, Any]]:
    """A shorter context that fits, or a pool that is large enough."""
    demand = draft.demand
    if demand.attention_groups:
        states = demand.recurrent_groups * demand.recurrent_blocks
        blocks = (draft.num_gpu_blocks - NULL_BLOCKS - states) // demand.attention_groups
        if blocks > 0:
            yield {"max_model_len": min(draft.max_model_len, blocks * draft.alignment.block_size)}
    if draft.num_gpu_blocks_override is not None:
        yield {"num_gpu_blocks_override": demand.blocks + NULL_BLOCKS}
    elif draft.typed.kv_cache_memory_bytes is not None:
        yield {"kv_cache_memory_bytes": (demand.blocks + NULL_BLOCKS) * demand.block_bytes}
    elif draft.device.type != "cpu":
        yield {"tensor_parallel_size": 2 * draft.tensor_parallel_size}


RULE = Rule(
    code="SF105",
    name="pool-below-one-request",
    summary="The pool must hold one request of `max_model_len` tokens.",
    why=(
        "A request that cannot get its blocks even when it is alone is preempted for ever. The numbers follow the "
        "worker's block alignment: a hybrid model also needs its recurrent states, one block a group in mode `none` "
        "and two in mode `align`, and one block of the pool is the null block."
    ),
    fix="Lower `max_model_len`, or enlarge the pool.",
    since="0.1.0",
    says=(
        "one request of max_model_len={} tokens needs {} blocks of",
        "max_model_len=-1 fits nothing",
        "To serve at least one request with the model's max seq len ({}), ({} GiB KV cache is needed",
        "Cannot auto-fit max_model_len: not enough GPU memory available to serve even a single token",
    ),
    fields=(
        "model.max_model_len",
        "cache.block_size",
        "cache.mamba_cache_mode",
        "cache.num_gpu_blocks_override",
        "cache.kv_cache_memory_bytes",
    ),
    example=Example("llama", {"num_gpu_blocks_override": 8, "max_model_len": 512}, fix={"max_model_len": 112}),
    check=check,
    proposals=proposals,
    reads_runtime=True,
)
