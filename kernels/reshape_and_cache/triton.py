"""Writes into the paged cache, one program a token."""

import triton
import triton.language as tl
from torch import Tensor

from staticfire.kernels.dtypes import FP8
from staticfire.kernels.interpreter import require_device
from staticfire.kernels.jit import require_fp8, to_fp8
from staticfire.kernels.narrow import narrow
from staticfire.kernels.pages import geometry
from staticfire.kernels.reshape_and_cache.metadata import CacheWrites
from staticfire.kernels.shapes import require_shapes, sizes


@triton.jit
def _rounded(x, scale, dtype: tl.constexpr):
    if scale is not None:
        x = x.to(tl.float32)
        return to_fp8(tl.div_rn(x, tl.zeros_like(x) + scale), dtype)
    return narrow(x, dtype)


@triton.jit
def _reshape_and_cache(
    key,
    value,
    cache,
    slots,
    k_scale,
    v_scale,
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
        tl.store(place, _rounded(k, k_scale, dtype), mask=inside)
        tl.store(place + cache_plane, _rounded(v, v_scale, dtype), mask=inside)


def reshape_and_cache(
    key: Tensor,
    value: Tensor,
    kv_cache: Tensor,
    slot_mapping: Tensor,
    k_scale: float = 1.0,
    v_scale: float = 1.0,
    metadata: CacheWrites | None = None,  # noqa: ARG001 - of the torch backend
) -> None:
    """See `staticfire.kernels.reshape_and_cache.reshape_and_cache`."""
    require_device(key)
    tokens, heads, size = sizes("reshape_and_cache", "key", key, "T, Hk, d")
    require_shapes(
        "reshape_and_cache",
        value=(value, (tokens, heads, size)),
        kv_cache=(kv_cache, (*kv_cache.shape[:3], heads, size)),
        slot_mapping=(slot_mapping, (tokens,)),
    )
    geometry(kv_cache)
    require_fp8(kv_cache)
    fp8 = kv_cache.dtype in FP8
    if tokens and heads and size:
        _reshape_and_cache[(tokens,)](
            key,
            value,
            kv_cache,
            slot_mapping.contiguous(),
            k_scale if fp8 else None,
            v_scale if fp8 else None,
            *key.stride(),
            *value.stride(),
            *kv_cache.stride(),
            kv_cache.shape[2],
            heads,
            size,
            HEADS=triton.next_power_of_2(heads),
            SIZE=triton.next_power_of_2(size),
        )
