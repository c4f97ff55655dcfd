"""Rotary embedding, one program for one token and a block of its heads."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from staticfire.kernels.interpreter import require_device
from staticfire.kernels.narrow import narrow
from staticfire.kernels.rotary.metadata import RotaryMetadata
from staticfire.kernels.shapes import require_shapes, sizes

HEADS = 4


@triton.jit
def _rotary(
    x,
    out,
    positions,
    cos_sin,
    x_token,
    x_head,
    x_column,
    angle_row,
    angle_column,
    heads,
    half,
    WIDE: tl.constexpr,
    HEADS: tl.constexpr,
    HALF: tl.constexpr,
):
    token = tl.program_id(0).to(tl.int64)
    head = (tl.program_id(1) * HEADS + tl.arange(0, HEADS)).to(tl.int64)[:, None]
    column = tl.arange(0, HALF).to(tl.int64)[None, :]
    inside = (head < heads) & (column < half)
    angles = cos_sin + tl.load(positions + token).to(tl.int64) * angle_row
    cos = tl.load(angles + column * angle_column, mask=column < half, other=0).to(WIDE)
    sin = tl.load(angles + (column + half) * angle_column, mask=column < half, other=0).to(WIDE)
    base = x + token * x_token + head * x_head
    first = tl.load(base + column * x_column, mask=inside, other=0).to(WIDE)
    second = tl.load(base + (column + half) * x_column, mask=inside, other=0).to(WIDE)
    place = out + (token * heads + head) * (2 * half) + column
    dtype: tl.constexpr = out.dtype.element_ty
    tl.store(place, narrow(first * cos - second * sin, dtype), mask=inside)
    tl.store(place + half, narrow(second * cos + first * sin, dtype), mask=inside)


def _rotated(x: Tensor, positions: Tensor, cos_sin: Tensor) -> Tensor:
    tokens, heads, size = x.shape
    out = x.new_empty(x.shape)
    if out.numel():
        _rotary[tokens, triton.cdiv(heads, HEADS)](
            x,
            out,
            positions,
            cos_sin,
            *x.stride(),
            *cos_sin.stride(),
            heads,
            size // 2,
            WIDE=tl.float64 if x.dtype is torch.float64 else tl.float32,
            HEADS=HEADS,
            HALF=triton.next_power_of_2(size // 2),
        )
    return out


def rotary_embedding(
    q: Tensor,
    k: Tensor,
    positions: Tensor,
    cos_sin: Tensor,
    metadata: RotaryMetadata | None = None,  # noqa: ARG001 - of the torch backend
) -> tuple[Tensor, Tensor]:
    """See `staticfire.kernels.rotary.rotary_embedding`."""
    require_device(q)
    tokens, _, size = sizes("rotary_embedding", "q", q, "T, Hq, d")
    _, key_heads, _ = sizes("rotary_embedding", "k", k, "T, Hk, d")
    require_shapes(
        "rotary_embedding",
        k=(k, (tokens, key_heads, size)),
        positions=(positions, (tokens,)),
        cos_sin=(cos_sin, (*cos_sin.shape[:1], size)),
    )
    if size % 2:
        raise ValueError(f"rotary_embedding: d is even; got {size}")
    positions = positions.contiguous()
    return _rotated(q, positions, cos_sin), _rotated(k, positions, cos_sin)
