"""Writes into the paged cache as two scatters of rows."""

import torch
from torch import Tensor

from staticfire.kernels.dtypes import FP8
from staticfire.kernels.pages import rows_of
from staticfire.kernels.reshape_and_cache.metadata import CacheWrites, make_metadata


def reshape_and_cache(
    key: Tensor,
    value: Tensor,
    kv_cache: Tensor,
    slot_mapping: Tensor,
    k_scale: float = 1.0,
    v_scale: float = 1.0,
    metadata: CacheWrites | None = None,
) -> None:
    """See `staticfire.kernels.reshape_and_cache.reshape_and_cache`."""
    if metadata is None:
        metadata = make_metadata(slot_mapping, kv_cache)
    if metadata.tokens is not None:
        key, value = key.index_select(0, metadata.tokens), value.index_select(0, metadata.tokens)
    if kv_cache.dtype in FP8:
        # A scatter moves bytes of any meaning, but not 8-bit floats.
        key, value = _bytes(key, k_scale, kv_cache.dtype), _bytes(value, v_scale, kv_cache.dtype)
        kv_cache = kv_cache.view(torch.uint8)
    elif key.dtype is not kv_cache.dtype:
        key, value = key.to(kv_cache.dtype), value.to(kv_cache.dtype)
    rows = rows_of(kv_cache, metadata.pages)
    rows.index_copy_(0, metadata.key_rows, key)
    rows.index_copy_(0, metadata.value_rows, value)


def _bytes(x: Tensor, scale: float, dtype: torch.dtype) -> Tensor:
    largest = torch.finfo(dtype).max
    return x.float().div(scale).clamp_(-largest, largest).to(dtype).view(torch.uint8)
