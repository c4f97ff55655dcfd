"""Writes into the paged cache, one token at a time.

Slot s of token t names block s // block_size and offset s % block_size; plane 0 of a block holds keys, plane 1
values (vLLM `reshape_and_cache`, with its flash layout). A negative slot writes nothing.
"""

from typing import Any

from torch import Tensor


def reshape_and_cache(
    key: Tensor,
    value: Tensor,
    kv_cache: Tensor,
    slot_mapping: Tensor,
    metadata: Any = None,  # noqa: ARG001 - derived from the other arguments, so nothing to read
) -> None:
    """See `staticfire.kernels.reshape_and_cache.reshape_and_cache`."""
    block_size = kv_cache.shape[2]
    for t, slot in enumerate(slot_mapping.tolist()):
        if slot >= 0:
            kv_cache[slot // block_size, 0, slot % block_size] = key[t].to(kv_cache.dtype)
            kv_cache[slot // block_size, 1, slot % block_size] = value[t].to(kv_cache.dtype)
