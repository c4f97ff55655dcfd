"""SF106: the weights come first, the cache gets what they leave."""

from collections.abc import Iterable, Mapping
from typing import Any

from staticfire.engine.config.chain import in_bytes
from staticfire.engine.config.draft import Draft
from staticfire.engine.config.rules.base import Example, Rule


def check(draft: Draft) -> str | None:
    """Refuse weights that leave no room for a cache. A CPU is not judged: it has no fixed share.

    A pool that is too large by itself is another rule's.
    """
    device = draft.device
    if device.type == "cpu" or draft.kv_cache_memory_bytes > device.memory_bytes:
        return None
    room = device.memory_bytes - draft.kv_cache_memory_bytes
    if draft.kv_cache_memory_bytes and draft.weights.least < room:
        return None
    told = "about" if draft.weights.known else "at least"
    return (
        f"{told} {in_bytes(draft.weights.least)} of weights a rank leave no room for a cache in "
        f"{device.name}'s {in_bytes(device.memory_bytes)}"
    )


def proposals(draft: Draft) -> Iterable[Mapping[str, Any]]:
    """More ranks, each with fewer weights; or experts in eight bits."""
    for ranks in (2, 4, 8, 16):
        if ranks > draft.tensor_parallel_size:
            yield {"tensor_parallel_size": ranks}
    if draft.model.num_experts and draft.quantization is None:
        yield {"quantization": "experts_int8"}


RULE = Rule(
    code="SF106",
    name="weights-beyond-device-memory",
    summary="The weights must leave room for a cache on the device.",
    why=(
        "Weights are counted from the shapes in `config.json`; what the device's memory share leaves is the cache. "
        "This is an estimate without activations: the real room is smaller, never larger."
    ),
    fix="Spread the model over more ranks, quantize, or choose a larger device.",
    since="0.1.0",
    says=(
        "of weights a rank leave no room for a cache in",
        "No available memory for the cache blocks",
        "GiB (model weights and runtime), more than the {} GiB of CPU memory reserved for it",
    ),
    fields=(
        "parallel.tensor_parallel_size",
        "model.dtype",
        "quantization.method",
        "cache.kv_cache_memory_bytes",
    ),
    example=Example("jamba", {}, device="thimble", fix={"tensor_parallel_size": 2}),
    check=check,
    proposals=proposals,
    reads_runtime=True,
    reads_bounds=True,
)
