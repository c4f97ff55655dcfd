"""Writes into the paged cache, one program a token."""

import triton
import triton.language as tl
from torch import Tensor

from staticfire.kernels.interpreter import require_device
from staticfire.kernels.narrow import narrow
from staticfire.kernels.pages import geometry
from staticfire.kernels.reshape_and_cache.metadata import CacheWrites


@triton.jit
def _reshape_and_cache(
    key,
    value,
    cache,
    slots,
    key_token,
    key_head,
    key_column,
    value_token,
    value_head,
    value_column,
    cache_block,
    cache_plane,
    cache_token,
    cache_head,
    cache_column,
    block_size,
    heads,
    size,
    HEADS: tl.constexpr,
    SIZE: tl.constexpr,
):
    token = tl.program_id(0).to(tl.int64)
    slot = tl.load(slots + token).to(tl.int64)
    head = tl.arange(0, HEADS).to(tl.int64)[:, None]
    column = tl.arange(0, SIZE).to(tl.int64)[None, :]
    inside = (head < heads) & (column < size)
    dtype: tl.constexpr = cache.dtype.element_ty
    if slot >= 0:
        k = tl.load(key + token * key_token + head * key_head + column * key_column, mask=inside, other=0)
        v = tl.load(value + token * value_token + head * value_head + column * value_column, mask=inside, other=0)
        place = cache + (slot // block_size) * cache_block + (slot % block_size) * cache_token
        place += head * cache_head + column * cache_column
        tl.store(place, narrow(k, dtype), mask=inside)
        tl.store(place + cache_plane, narrow(v, dtype), mask=inside)


def reshape_and_cache(
    key: Tensor,
    value: Tensor,
    kv_cache: Tensor,
    slot_mapping: Tensor,
    metadata: CacheWrites | None = None,  # noqa: ARG001 - of the torch backend
) -> None:
    """See `staticfire.kernels.reshape_and_cache.reshape_and_cache`."""
    require_device(key)
    geometry(kv_cache)
    tokens, heads, size = key.shape
    if tokens and heads and size:
        _reshape_and_cache[(tokens,)](
            key,
            value,
            kv_cache,
            slot_mapping.contiguous(),
            *key.stride(),
            *value.stride(),
            *kv_cache.stride(),
            kv_cache.shape[2],
            heads,
            size,
            HEADS=triton.next_power_of_2(heads),
            SIZE=triton.next_power_of_2(size),
        )
