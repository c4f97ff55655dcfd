"""SF607: a number of blocks beats a number of bytes."""

from collections.abc import Iterable
from typing import Any

from staticfire.engine.config.draft import Draft
from staticfire.engine.config.rules.base import Example, RewriteRule


def find(draft: Draft) -> Iterable[tuple[str, Any, Any, str]]:
    """Find typed bytes that the override replaces."""
    typed, blocks = draft.typed.kv_cache_memory_bytes, draft.num_gpu_blocks_override
    if typed is None or blocks is None or typed // draft.demand.block_bytes == blocks:
        return
    size = blocks * draft.demand.block_bytes
    yield (
        "cache.kv_cache_memory_bytes",
        typed,
        size,
        f"kv_cache_memory_bytes={typed} is replaced: num_gpu_blocks_override={blocks} blocks take {size} B",
    )


RULE = RewriteRule(
    code="SF607",
    name="memory-bytes-beside-block-override",
    summary="`num_gpu_blocks_override` beats `kv_cache_memory_bytes`.",
    why="Both size the pool; the number of blocks is the more exact one.",
    fix="Type one of them.",
    since="0.1.0",
    fields=(
        "cache.kv_cache_memory_bytes",
        "cache.num_gpu_blocks_override",
    ),
    example=Example("llama", {"kv_cache_memory_bytes": 2**24, "num_gpu_blocks_override": 64, "max_model_len": 512}),
    find=find,
)
