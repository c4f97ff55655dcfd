"""Write new keys and values into the paged cache."""

from torch import Tensor

from staticfire.kernels.dispatch import Backend, Registry
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
    metadata: CacheWrites | None = None,
    backend: Backend = "torch",
) -> None:
    """Store the keys and values of T tokens in their pages, in place.

    Args:
        key: [T, Hk, d].
        value: [T, Hk, d].
        kv_cache: [num_blocks, 2, block_size, Hk, d], keys then values; dense tokens, any page stride that is a
            multiple of Hk * d elements. Values are rounded to its dtype.
        slot_mapping: int[T], block * block_size + offset, no slot twice; negative writes nothing.
        metadata: What `make_metadata(slot_mapping, kv_cache)` gave for this step, to share it between layers.
        backend: Which implementation runs.

    Raises:
        ValueError: The cache's layout is unfit, `metadata` was made for another layout, or `backend` is unknown.
    """
    _IMPL[backend](key, value, kv_cache, slot_mapping, metadata)
