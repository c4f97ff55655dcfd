"""Rotary embedding, one token and one head at a time.

Formula: with x = (x1, x2) the halves of a head, y1 = x1 cos - x2 sin, y2 = x2 cos + x1 sin (Su et al. 2021,
equation 34, in the half-split layout of GPT-NeoX). Computed in float32 (float64 for float64), rounded once.
"""

import torch
from torch import Tensor

from staticfire.kernels.dtypes import compute_dtype
from staticfire.kernels.rotary.metadata import RotaryMetadata


def _rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    half = x.shape[-1] // 2
    out = torch.empty_like(x)
    for head in range(x.shape[0]):
        first, second = x[head, :half].to(cos.dtype), x[head, half:].to(cos.dtype)
        out[head, :half] = (first * cos - second * sin).to(x.dtype)
        out[head, half:] = (second * cos + first * sin).to(x.dtype)
    return out


def rotary_embedding(
    q: Tensor,
    k: Tensor,
    positions: Tensor,
    cos_sin: Tensor,
    metadata: RotaryMetadata | None = None,  # noqa: ARG001 - derived from the other arguments, so nothing to read
) -> tuple[Tensor, Tensor]:
    """See `staticfire.kernels.rotary.rotary_embedding`."""
    half = cos_sin.shape[-1] // 2
    q_out, k_out = torch.empty_like(q), torch.empty_like(k)
    for t in range(q.shape[0]):
        angles = cos_sin[int(positions[t])].to(compute_dtype(q))
        q_out[t] = _rotate(q[t], angles[:half], angles[half:])
        k_out[t] = _rotate(k[t], angles[:half], angles[half:])
    return q_out, k_out
