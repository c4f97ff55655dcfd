"""Write new keys and values into the paged cache."""

from torch import Tensor

from staticfire.kernels.dispatch import Backend, Registry
from staticfire.kernels.dtypes import cache_scales
from staticfire.kernels.reshape_and_cache import reference as _reference
from staticfire.kernels.reshape_and_cache import torch as _torch
from staticfire.kernels.reshape_and_cache.metadata import CacheWrites, make_metadata

__all__ = ["CacheWrites", "make_metadata", "reshape_and_cache"]

_IMPL = Registry(
    "reshape_and_cache",
    {"torch": _torch.reshape_and_cache, "reference": _reference.reshape_and_cache},
    {"triton": "staticfire.kernels.reshape_and_cache.triton:reshape_and_cache"},
)


def reshape_and_cache(
    key: Tensor,
    value: Tensor,
    kv_cache: Tensor,
    slot_mapping: Tensor,
    *,
    k_scale: float = 1.0,
    v_scale: float = 1.0,
    metadata: CacheWrites | None = None,
    backend: Backend = "torch",
) -> None:
    """Store the keys and values of T tokens in their pages, in place.

    Args:
        key: [T, Hk, d].
        value: [T, Hk, d].
        kv_cache: [num_blocks, 2, block_size, Hk, d], keys then values; dense tokens, any page stride that is a
            multiple of Hk * d elements. Values are rounded to its dtype; to 8-bit floats (e4m3fn, e5m2) they are
            divided by their scale in float32 first, and those too large for it become the largest.
        slot_mapping: int[T], block * block_size + offset, no slot twice; negative writes nothing.
        k_scale: What the keys of an 8-bit cache are divided by, as float32.
        v_scale: The same of its values.
        metadata: What `make_metadata(slot_mapping, kv_cache)` gave for this step, to share it between layers.
        backend: Which implementation runs.

    Raises:
        ValueError: The cache's layout is unfit, `metadata` was made for another layout, a scale is no scale, or
            `backend` is unknown.
    """
    k_scale, v_scale = cache_scales("reshape_and_cache", kv_cache, k_scale, v_scale)
    _IMPL[backend](key, value, kv_cache, slot_mapping, k_scale, v_scale, metadata)
