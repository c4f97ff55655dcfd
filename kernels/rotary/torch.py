"""Rotary embedding on queries and keys together: y = x cos + roll(x) (-sin, sin)."""

import torch
from torch import Tensor

from staticfire.kernels.rotary.metadata import RotaryMetadata, make_metadata


def rotary_embedding(
    q: Tensor, k: Tensor, positions: Tensor, cos_sin: Tensor, metadata: RotaryMetadata | None = None
) -> tuple[Tensor, Tensor]:
    """See `staticfire.kernels.rotary.rotary_embedding`."""
    cos, sin = metadata if metadata is not None else make_metadata(positions, cos_sin, q.dtype)
    both = torch.cat((q, k), 1)
    dtype = both.dtype
    if dtype is not cos.dtype:
        both = both.to(cos.dtype)
    both = torch.addcmul(both * cos, both.roll(both.shape[-1] // 2, -1), sin)
    if dtype is not cos.dtype:
        both = both.to(dtype)
    heads = q.shape[1]
    return both[:, :heads], both[:, heads:]
