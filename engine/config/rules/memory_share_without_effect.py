"""SF606: a share of memory is ignored where the pool is sized otherwise."""

from collections.abc import Iterable
from typing import Any

from staticfire.engine.config.draft import Draft
from staticfire.engine.config.rules.base import Example, RewriteRule


def find(draft: Draft) -> Iterable[tuple[str, Any, Any, str]]:
    """Find a typed share that sizes nothing."""
    typed = draft.typed.gpu_memory_utilization
    if typed is None:
        return
    if draft.typed.kv_cache_memory_bytes is not None:
        reason = "kv_cache_memory_bytes sizes the pool"
    elif draft.num_gpu_blocks_override is not None:
        reason = "num_gpu_blocks_override sizes the pool"
    elif draft.device.type == "cpu":
        reason = "a CPU has no share to take"
    else:
        return
    where = "cache.gpu_memory_utilization"
    yield where, typed, None, f"gpu_memory_utilization={typed:g} has no effect: {reason}"


RULE = RewriteRule(
    code="SF606",
    name="memory-share-without-effect",
    summary="`gpu_memory_utilization` has no effect on a CPU, or where the pool is sized in bytes or blocks.",
    why="It is one of three ways to size the pool, and the weakest.",
    fix="Drop it.",
    since="0.1.0",
    fields=(
        "cache.gpu_memory_utilization",
        "cache.kv_cache_memory_bytes",
    ),
    example=Example("llama", {"gpu_memory_utilization": 0.5}),
    find=find,
)
