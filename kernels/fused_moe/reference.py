"""Mixture of experts, one token and one chosen expert at a time.

Formula: out_t = sum_j weight_tj * W2_e (silu(g) * u), (g, u) = halves of W13_e x_t, e = id_tj (Shazeer et al. 2020;
Mixtral, Jamba). With int8 weights each product is taken on the integers and the output channel's scale multiplies
the sum: (Q x)_r * s_r, as weight-only int8 kernels do. In float32 (float64 for float64), rounded once.
"""

import torch
from torch import Tensor

from staticfire.kernels.dtypes import compute_dtype


def _project(w: Tensor, x: Tensor, scale: Tensor | None) -> Tensor:
    total = (w.to(x.dtype) * x[None, :]).sum(-1)
    return total if scale is None else total * scale.to(x.dtype)


def fused_moe(
    x: Tensor,
    w13: Tensor,
    w2: Tensor,
    topk_weights: Tensor,
    topk_ids: Tensor,
    w13_scale: Tensor | None,
    w2_scale: Tensor | None,
) -> Tensor:
    """See `staticfire.kernels.fused_moe.fused_moe`."""
    wide, inner = compute_dtype(x), w2.shape[2]
    out = torch.zeros_like(x)
    for t in range(x.shape[0]):
        total = torch.zeros(x.shape[1], dtype=wide, device=x.device)
        for weight, e in zip(topk_weights[t].to(wide), topk_ids[t].tolist(), strict=True):
            up = _project(w13[e], x[t].to(wide), None if w13_scale is None else w13_scale[e])
            gate = up[:inner]
            act = gate / (1 + torch.exp(-gate)) * up[inner:]
            total = total + weight * _project(w2[e], act, None if w2_scale is None else w2_scale[e])
        out[t] = total.to(x.dtype)
    return out
