"""RMSNorm, one program a row (or a row's part): the sum of squares never leaves the registers."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from staticfire.kernels.interpreter import require_device
from staticfire.kernels.narrow import narrow
from staticfire.kernels.shapes import require_shapes, sizes


@triton.jit
def _rms_norm(
    x,
    residual,
    weight,
    out,
    total,
    first_column,
    x_row,
    x_column,
    residual_row,
    residual_column,
    weight_column,
    hidden,
    EPS: tl.constexpr,
    WIDE: tl.constexpr,
    BLOCK: tl.constexpr,
    PARTS: tl.constexpr,
):
    """One row, or one part of a row where `first_column` [parts + 1] says where the parts begin.

    EPS is a constant: as an argument it would be a float32 even beside float64 data.
    """
    row = tl.program_id(0).to(tl.int64)
    begin, end = 0, hidden
    if PARTS:
        begin = tl.load(first_column + tl.program_id(1)).to(tl.int32)
        end = tl.load(first_column + tl.program_id(1) + 1).to(tl.int32)
    column = (begin + tl.arange(0, BLOCK)).to(tl.int64)
    inside = column < end
    dtype: tl.constexpr = out.dtype.element_ty
    values = tl.load(x + row * x_row + column * x_column, mask=inside, other=0).to(WIDE)
    if residual is not None:
        values += tl.load(residual + row * residual_row + column * residual_column, mask=inside, other=0).to(WIDE)
        rounded = narrow(values, dtype)
        tl.store(total + row * hidden + column, rounded, mask=inside)
        values = rounded.to(WIDE)
    mean_square = tl.sum(values * values, 0) / (end - begin)
    quotient = narrow(values / tl.sqrt(mean_square + EPS), dtype).to(WIDE)
    scale = tl.load(weight + column * weight_column, mask=inside, other=0).to(WIDE)
    tl.store(out + row * hidden + column, narrow(quotient * scale, dtype), mask=inside)


def warps(block: int) -> int:
    """Choose the warps of a program for `block` columns."""
    return min(8, max(1, block // 512))


def _launch(
    op: str, x: Tensor, residual: Tensor | None, weight: Tensor, eps: float, parts: tuple[int, ...] = ()
) -> tuple[Tensor, Tensor | None]:
    require_device(x)
    rows, hidden = sizes(op, "x", x, "T, H")
    require_shapes(op, residual=(residual, (rows, hidden)), weight=(weight, (hidden,)))
    parts = parts or (hidden,)
    if sum(parts) != hidden:
        raise ValueError(f"{op}: sizes add up to {hidden}, the columns of x; got {list(parts)}")
    out = x.new_empty(rows, hidden)
    total = None if residual is None else x.new_empty(rows, hidden)
    starts = None
    if len(parts) > 1:
        starts = torch.tensor([0, *parts], device=x.device).cumsum(0, dtype=torch.int32)
    if out.numel():
        block = triton.next_power_of_2(max(parts))
        _rms_norm[rows, len(parts)](
            x,
            residual,
            weight,
            out,
            total,
            starts,
            *x.stride(),
            *(residual.stride() if residual is not None else (0, 0)),
            weight.stride(0),
            hidden,
            EPS=eps,
            WIDE=tl.float64 if x.dtype is torch.float64 else tl.float32,
            BLOCK=block,
            PARTS=len(parts) > 1,
            num_warps=warps(block),
        )
    return out, total


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """See `staticfire.kernels.rms_norm.rms_norm`."""
    return _launch("rms_norm", x, None, weight, eps)[0]


def fused_add_rms_norm(x: Tensor, residual: Tensor, weight: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """See `staticfire.kernels.rms_norm.fused_add_rms_norm`."""
    out, total = _launch("fused_add_rms_norm", x, residual, weight, eps)
    assert total is not None
    return out, total


def rms_norm_parts(x: Tensor, weight: Tensor, eps: float, sizes: tuple[int, ...]) -> Tensor:
    """See `staticfire.kernels.rms_norm.rms_norm_parts`."""
    return _launch("rms_norm_parts", x, None, weight, eps, sizes)[0]
