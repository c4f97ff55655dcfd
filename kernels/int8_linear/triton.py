"""Linear layer with int8 weights: one program a tile of the output, weights widened on their way to the product."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from staticfire.kernels.dtypes import compute_dtype
from staticfire.kernels.interpreter import interpreted, require_device
from staticfire.kernels.jit import operand
from staticfire.kernels.narrow import narrow
from staticfire.kernels.tiles import product_tiles


@triton.jit
def _int8_linear(
    x,
    w,
    scale,
    bias,
    out,
    x_token,
    x_channel,
    w_row,
    w_channel,
    tokens,
    inputs,
    outputs,
    WIDE: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    INNER: tl.constexpr,
    UPCAST: tl.constexpr,
):
    dtype: tl.constexpr = x.dtype.element_ty
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    channel = tl.arange(0, INNER)
    real = row < tokens
    inside = column < outputs
    wide_row = row.to(tl.int64)[:, None]
    wide_column = column.to(tl.int64)[None, :]
    x_place = x + wide_row * x_token + channel[None, :].to(tl.int64) * x_channel
    w_place = w + wide_column * w_row + channel[:, None].to(tl.int64) * w_channel
    x_step = tl.full([], INNER, tl.int64) * x_channel
    w_step = tl.full([], INNER, tl.int64) * w_channel
    total = tl.zeros([ROWS, COLUMNS], dtype=WIDE)
    for begin in range(0, inputs, INNER):
        left = channel < inputs - begin
        values = operand(tl.load(x_place, mask=real[:, None] & left[None, :], other=0), dtype, UPCAST)
        weights = operand(tl.load(w_place, mask=left[:, None] & inside[None, :], other=0), dtype, UPCAST)
        total = tl.dot(values, weights, total, input_precision="ieee", out_dtype=WIDE)
        x_place += x_step
        w_place += w_step
    total *= tl.load(scale + column, mask=inside, other=0)[None, :]
    if bias is not None:
        total += tl.load(bias + column, mask=inside, other=0).to(WIDE)[None, :]
    tl.store(out + wide_row * outputs + wide_column, narrow(total, dtype), mask=real[:, None] & inside[None, :])


def int8_linear(x: Tensor, w: Tensor, scale: Tensor, bias: Tensor | None = None) -> Tensor:
    """See `staticfire.kernels.int8_linear.int8_linear`."""
    require_device(x)
    tokens, (outputs, inputs) = x.shape[0], w.shape
    out = x.new_empty(tokens, outputs)
    if not out.numel():
        return out
    amd, small = torch.version.hip is not None, interpreted()
    tiles = product_tiles(tokens, x.element_size(), pair=False, amd=amd, interpreted=small)
    _int8_linear[triton.cdiv(tokens, tiles.rows), triton.cdiv(outputs, tiles.columns)](
        x,
        w,
        scale.contiguous(),
        None if bias is None else bias.contiguous(),
        out,
        *x.stride(),
        *w.stride(),
        tokens,
        inputs,
        outputs,
        WIDE=tl.float64 if compute_dtype(x) is torch.float64 else tl.float32,
        ROWS=tiles.rows,
        COLUMNS=tiles.columns,
        INNER=tiles.inner,
        UPCAST=small and x.dtype is torch.bfloat16,
        num_warps=tiles.num_warps,
        num_stages=tiles.num_stages,
    )
    return out
