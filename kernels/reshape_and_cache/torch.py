"""Writes into the paged cache as two scatters of rows."""

from torch import Tensor

from staticfire.kernels.pages import rows_of
from staticfire.kernels.reshape_and_cache.metadata import CacheWrites, make_metadata


def reshape_and_cache(
    key: Tensor, value: Tensor, kv_cache: Tensor, slot_mapping: Tensor, metadata: CacheWrites | None = None
) -> None:
    """See `staticfire.kernels.reshape_and_cache.reshape_and_cache`."""
    if metadata is None:
        metadata = make_metadata(slot_mapping, kv_cache)
    if metadata.tokens is not None:
        key, value = key.index_select(0, metadata.tokens), value.index_select(0, metadata.tokens)
    if key.dtype is not kv_cache.dtype:
        key, value = key.to(kv_cache.dtype), value.to(kv_cache.dtype)
    rows = rows_of(kv_cache, metadata.pages)
    rows.index_copy_(0, metadata.key_rows, key)
    rows.index_copy_(0, metadata.value_rows, value)
