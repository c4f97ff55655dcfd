"""Key-value pages seen as rows: one row is the heads of one token, so that a gather or a scatter is one call.

A cache layer is kv_cache[num_blocks, 2, block_size, Hk, d], a view into a byte pool whose pages may be larger than
the keys and values in them.
"""

from typing import NamedTuple

import torch
from torch import Tensor


class PageGeometry(NamedTuple):
    """Strides of a cache layer, in rows of Hk * d elements.

    Attributes:
        strides: Strides of the layer in elements; index lists made for one layer serve every layer that has them.
        block: Rows from a block to the next.
        plane: Rows from the keys of a block to its values.
        size: Tokens in a block.
    """

    strides: tuple[int, ...]
    block: int
    plane: int
    size: int


def geometry(kv_cache: Tensor) -> PageGeometry:
    """Measure a cache layer.

    Args:
        kv_cache: [num_blocks, 2, block_size, Hk, d].

    Returns:
        Its strides in rows.

    Raises:
        ValueError: A token's heads are not one dense row, or pages do not start at whole rows.
    """
    strides, (_, planes, size, heads, head_size) = kv_cache.stride(), kv_cache.shape
    row = heads * head_size
    tight = (2 * size * row, size * row, row, head_size, 1)
    # The stride of a dimension of one element means nothing, and need not be what it is in a dense tensor.
    block, plane, *inner = (t if n == 1 else s for n, s, t in zip(kv_cache.shape, strides, tight, strict=True))
    dense = planes == 2 and tuple(inner) == tight[2:]
    if not dense or block % row or plane % row:
        raise ValueError(
            f"kv_cache: shape [num_blocks, 2, block_size, Hk, d] with dense tokens and pages that start at a multiple "
            f"of Hk * d = {row} elements; got shape {list(kv_cache.shape)}, strides {list(strides)}"
        )
    return PageGeometry(strides, block // row, plane // row, size)


def require_strides(kv_cache: Tensor, pages: PageGeometry) -> None:
    """Refuse a layer that `pages` was not measured for.

    Args:
        kv_cache: The layer.
        pages: Of another.

    Raises:
        ValueError: Their strides differ.
    """
    if kv_cache.stride() != pages.strides:
        raise ValueError(
            f"kv_cache: metadata was made for strides {list(pages.strides)}; got {list(kv_cache.stride())}"
        )


def rows_of(kv_cache: Tensor, pages: PageGeometry) -> Tensor:
    """Return the rows [R, Hk, d] of a cache layer, sharing its memory.

    Args:
        kv_cache: The layer.
        pages: Its geometry, or that of a layer with the same strides.

    Raises:
        ValueError: The layer has other strides.
    """
    require_strides(kv_cache, pages)
    blocks, _, size, heads, head_size = kv_cache.shape
    rows = (blocks - 1) * pages.block + pages.plane + size
    return torch.as_strided(kv_cache, (rows, heads, head_size), (heads * head_size, head_size, 1))
