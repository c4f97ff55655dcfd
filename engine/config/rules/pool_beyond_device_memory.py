"""SF109: a pool that was asked for must fit the device."""

from collections.abc import Iterable, Mapping
from typing import Any

from staticfire.engine.config.chain import in_bytes
from staticfire.engine.config.draft import Draft
from staticfire.engine.config.rules.base import Example, Rule


def check(draft: Draft) -> str | None:
    """Refuse a pool larger than the device where something typed made it so; a default is only noted."""
    typed, device = draft.typed, draft.device
    asked = (typed.num_gpu_blocks_override, typed.kv_cache_memory_bytes, typed.block_size)
    if draft.kv_cache_memory_bytes <= device.memory_bytes or asked == (None, None, None):
        return None
    return (
        f"a pool of {draft.num_gpu_blocks} blocks takes {in_bytes(draft.kv_cache_memory_bytes)}, but "
        f"{device.name} has {in_bytes(device.memory_bytes)}"
    )


def proposals(draft: Draft) -> Iterable[Mapping[str, Any]]:
    """The largest pool that fits, or the default block size."""
    fitting = draft.device.memory_bytes // draft.demand.block_bytes
    if draft.num_gpu_blocks_override is not None and fitting > 1:
        yield {"num_gpu_blocks_override": fitting}
    elif draft.typed.kv_cache_memory_bytes is not None:
        yield {"kv_cache_memory_bytes": draft.device.memory_bytes}


RULE = Rule(
    code="SF109",
    name="pool-beyond-device-memory",
    summary="A pool that was asked for must fit the device's memory.",
    why=(
        "The pool is allocated at start-up, as a whole. One that is larger than the device fails there, or, where "
        "memory is only promised, much later, in the middle of a request."
    ),
    fix="Ask for fewer blocks or bytes, or for a smaller `block_size`.",
    since="0.1.0",
    says=("a pool of {} blocks takes {}, but", "GiB) on kv cache allocation is less than requested memory for kv ("),
    fields=("cache.num_gpu_blocks_override", "cache.block_size", "cache.kv_cache_memory_bytes"),
    example=Example("llama", {"num_gpu_blocks_override": 2**24}, fix={"num_gpu_blocks_override": 2**16}),
    check=check,
    proposals=proposals,
    reads_runtime=True,
)
