"""Int8 quantization, one program an output row, in two passes over it.

Quotients are rounded by adding and taking away 1.5 * 2^m, m being the bits of the mantissa: between 2^m and 2^(m+1)
neighbouring numbers are 1 apart, so the addition itself rounds to the nearest integer, ties to even.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from staticfire.kernels.interpreter import require_device
from staticfire.kernels.narrow import narrow

BLOCK = 1024


@triton.jit
def _divide(x, y, WIDE: tl.constexpr):
    """Divide with one rounding; float32's plain division is an approximation on a GPU."""
    if WIDE == tl.float32:
        return tl.div_rn(x, y)
    return x / y


@triton.jit
def _quantize(w, q, scale, width, WIDE: tl.constexpr, BIG: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    largest = tl.zeros([BLOCK], dtype=WIDE)
    for begin in range(0, width, BLOCK):
        column = begin + tl.arange(0, BLOCK)
        values = tl.load(w + row * width + column, mask=column < width, other=0).to(WIDE)
        largest = tl.maximum(largest, tl.abs(values))
    limit = tl.full([1], 127, WIDE)
    step = narrow(_divide(tl.max(largest, 0) + tl.zeros([1], dtype=WIDE), limit, WIDE), tl.float32)
    step = tl.where(step > 0, step, 1.0)
    tl.store(scale + row + tl.arange(0, 1), step)
    wide_step = tl.broadcast_to(step.to(WIDE), [BLOCK])
    for begin in range(0, width, BLOCK):
        column = begin + tl.arange(0, BLOCK)
        values = tl.load(w + row * width + column, mask=column < width, other=0).to(WIDE)
        quotient = tl.minimum(tl.maximum(_divide(values, wide_step, WIDE), -127.0), 127.0)
        rounded = (quotient + BIG) - BIG
        tl.store(q + row * width + column, rounded.to(tl.int8), mask=column < width)


def quantize_per_channel(w: Tensor) -> tuple[Tensor, Tensor]:
    """See `staticfire.kernels.int8_quant.quantize_per_channel`."""
    require_device(w)
    rows = w.reshape(-1, w.shape[-1]).contiguous()
    q = rows.new_empty(rows.shape, dtype=torch.int8)
    scale = rows.new_empty(rows.shape[0], dtype=torch.float32)
    if rows.numel():
        double = w.dtype is torch.float64
        _quantize[(rows.shape[0],)](
            rows,
            q,
            scale,
            rows.shape[1],
            WIDE=tl.float64 if double else tl.float32,
            BIG=1.5 * 2.0**52 if double else 1.5 * 2.0**23,
            BLOCK=min(BLOCK, triton.next_power_of_2(rows.shape[1])),
        )
    return q.view(w.shape), scale.view(w.shape[:-1])
