"""SwiGLU gate, one program for a block of one row."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from staticfire.kernels.interpreter import require_device
from staticfire.kernels.narrow import narrow

BLOCK = 1024


@triton.jit
def _silu_and_mul(x, out, x_row, x_column, width, WIDE: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = column < width
    dtype: tl.constexpr = out.dtype.element_ty
    gate = tl.load(x + row * x_row + column * x_column, mask=inside, other=0).to(WIDE)
    up = tl.load(x + row * x_row + (column + width) * x_column, mask=inside, other=0).to(WIDE)
    silu = narrow(gate / (1 + tl.exp(-gate)), dtype).to(WIDE)
    tl.store(out + row * width + column, narrow(silu * up, dtype), mask=inside)


def silu_and_mul(x: Tensor) -> Tensor:
    """See `staticfire.kernels.silu_and_mul.silu_and_mul`."""
    require_device(x)
    rows = x.reshape(x.shape[:-1].numel(), x.shape[-1])
    width = x.shape[-1] // 2
    out = x.new_empty(rows.shape[0], width)
    if out.numel():
        block = min(BLOCK, triton.next_power_of_2(width))
        wide = tl.float64 if x.dtype is torch.float64 else tl.float32
        _silu_and_mul[rows.shape[0], triton.cdiv(width, block)](
            rows, out, *rows.stride(), width, WIDE=wide, BLOCK=block
        )
    return out.view(*x.shape[:-1], width)
