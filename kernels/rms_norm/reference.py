"""RMSNorm, one token at a time.

Formula: y = w * (x / sqrt(mean_h(x_h^2) + eps)) (Zhang and Sennrich 2019, equation 4). The inner quotient is
computed in float32 (float64 for float64 input) and rounded to the input's dtype before the weight is applied.
"""

import torch
from torch import Tensor

from staticfire.kernels.dtypes import compute_dtype


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """See `staticfire.kernels.rms_norm.rms_norm`."""
    out = torch.empty_like(x)
    for t in range(x.shape[0]):
        row = x[t].to(compute_dtype(x))
        mean_square = (row * row).sum() / row.numel()
        out[t] = (row / torch.sqrt(mean_square + eps)).to(x.dtype) * weight
    return out


def fused_add_rms_norm(x: Tensor, residual: Tensor, weight: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """See `staticfire.kernels.rms_norm.fused_add_rms_norm`."""
    total = x + residual
    return rms_norm(total, weight, eps), total


def rms_norm_parts(x: Tensor, weight: Tensor, eps: float, sizes: tuple[int, ...]) -> Tensor:
    """See `staticfire.kernels.rms_norm.rms_norm_parts`."""
    parts = zip(x.split(sizes, 1), weight.split(sizes), strict=True)
    return torch.cat([rms_norm(part, scale, eps) for part, scale in parts], 1)
