"""Rows of a cache layer that a step writes: built once a step, shared by every attention layer."""

from typing import NamedTuple

import torch
from torch import Tensor

from staticfire.kernels.pages import PageGeometry, geometry


class CacheWrites(NamedTuple):
    """Where the keys and values of a step go.

    Attributes:
        pages: Geometry of the layers that this serves.
        key_rows: int64[n], row of each key.
        value_rows: int64[n], row of each value.
        tokens: int64[n], the tokens that have a slot; None when all T have.
    """

    pages: PageGeometry
    key_rows: Tensor
    value_rows: Tensor
    tokens: Tensor | None


def make_metadata(slot_mapping: Tensor, kv_cache: Tensor) -> CacheWrites:
    """Turn slots into rows.

    Args:
        slot_mapping: int[T], block * block_size + offset; negative writes nothing.
        kv_cache: Any layer of the cache.

    Returns:
        The rows to write.

    Raises:
        ValueError: The layer's layout is unfit (see `pages.geometry`).
    """
    pages = geometry(kv_cache)
    slots, tokens = slot_mapping.to(torch.int64), None
    present = slots >= 0
    if not bool(present.all()):
        tokens = present.nonzero().squeeze(1)
        slots = slots.index_select(0, tokens)
    blocks = slots // pages.size
    keys = slots.add(blocks, alpha=pages.block - pages.size)
    return CacheWrites(pages, keys, keys + pages.plane, tokens)
