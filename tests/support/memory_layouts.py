"""Tensors laid where a mistake shows: fenced in, or so far apart that their offsets need more than 32 bits."""

from pathlib import Path

import torch
from torch import Tensor

from staticfire.kernels.testing import poisoned

STRIDE = 2**30 + 64
"""Elements from row to row: row 2 begins beyond 2^31."""


def far(folder: Path, name: str, values: Tensor, axis: int = 0) -> Tensor:
    """Lay the slices of a tensor along an axis `STRIDE` elements apart, in a sparse file that takes no room.

    Args:
        folder: Where the file goes.
        name: Of the file, unique in the folder.
        values: Any tensor with at least 3 of them.
        axis: The axis.

    Returns:
        A view equal to `values`.
    """
    rows = values.movedim(axis, 0).contiguous()
    assert rows.shape[0] >= 3
    size = (rows.shape[0] - 1) * STRIDE + rows[0].numel()
    buffer = torch.from_file(str(folder / name), shared=True, size=size, dtype=values.dtype)
    view = buffer.as_strided(rows.shape, (STRIDE, *rows.stride()[1:]))
    return view.copy_(rows).movedim(0, axis)


def fenced(values: Tensor) -> Tensor:
    """Put poison before and behind a list.

    Args:
        values: [N], integers.

    Returns:
        A view equal to `values`.
    """
    buffer = poisoned(values.shape[0] + 4, dtype=values.dtype)
    view = buffer[2:-2]
    return view.copy_(values)
