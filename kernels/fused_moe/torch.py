"""Mixture of experts: all experts for every token when that is little work, else tokens sorted by expert."""

import torch
from torch import Tensor
from torch.nn.functional import linear, silu

from staticfire.kernels.dtypes import compute_dtype

DENSE_PAIRS = 512
"""Token-expert pairs up to which every expert runs on every token: measured, below this a loop over experts costs
more in calls than it saves in arithmetic (4 to 16 experts, 64 to 128 channels)."""

DENSE_PRODUCTS = 1 << 23
"""Multiplications of the first projection up to which the same holds, for experts of any size."""


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
    if x.dtype is torch.float16 and w13_scale is not None:
        # Sums over integers overflow float16 before their scale brings them down.
        wide = x.to(torch.float32)
        return fused_moe(wide, w13, w2, topk_weights, topk_ids, w13_scale, w2_scale).to(x.dtype)
    pairs = x.shape[0] * w13.shape[0]
    # float16 overflows at 65504: an expert that was not chosen could turn 0 * inf into NaN.
    little = pairs <= DENSE_PAIRS and pairs * w13.shape[1] * w13.shape[2] <= DENSE_PRODUCTS
    if little and x.dtype is not torch.float16:
        return _dense(x, w13, w2, topk_weights, topk_ids, w13_scale, w2_scale)
    return _sorted(x, w13, w2, topk_weights, topk_ids, w13_scale, w2_scale)


def _dense(
    x: Tensor,
    w13: Tensor,
    w2: Tensor,
    topk_weights: Tensor,
    topk_ids: Tensor,
    w13_scale: Tensor | None,
    w2_scale: Tensor | None,
) -> Tensor:
    experts, wide, hidden = w13.shape
    tokens, dtype = x.shape[0], x.dtype
    if w13.dtype is not dtype:
        w13, w2 = w13.to(dtype), w2.to(dtype)
    if w13.stride(1) == 1:
        up = torch.mm(x, w13.permute(2, 0, 1).reshape(hidden, experts * wide))
    else:
        up = linear(x, w13.reshape(experts * wide, hidden))
    up = up.view(tokens, experts, wide)
    if w13_scale is not None:
        up = (up * w13_scale).to(dtype)
    gate, value = up.chunk(2, -1)
    act = silu(gate).mul_(value)
    routed = topk_weights.new_zeros(tokens, experts).scatter_(1, topk_ids, topk_weights)
    if w2_scale is None and w2.stride(1) == 1 and act.dtype is routed.dtype:
        act.mul_(routed.unsqueeze(-1))
        inner = experts * w2.shape[2]
        return torch.mm(act.view(tokens, inner), w2.transpose(1, 2).reshape(inner, hidden))
    down = torch.bmm(act.transpose(0, 1), w2.transpose(1, 2))
    factors = routed.t().unsqueeze(-1)
    if w2_scale is not None:
        factors = factors * w2_scale.unsqueeze(1)
    return (down * factors).sum(0).to(dtype)


def _sorted(
    x: Tensor,
    w13: Tensor,
    w2: Tensor,
    topk_weights: Tensor,
    topk_ids: Tensor,
    w13_scale: Tensor | None,
    w2_scale: Tensor | None,
) -> Tensor:
    tokens, top_k = topk_ids.shape
    dtype, wide = x.dtype, compute_dtype(x)
    flat = topk_ids.reshape(-1)
    order = torch.argsort(flat, stable=True)
    counts = torch.bincount(flat, minlength=w13.shape[0]).tolist()
    rows = x.index_select(0, order // top_k)
    down = torch.empty(rows.shape, dtype=wide, device=x.device)
    start = 0
    for e, count in enumerate(counts):
        if count == 0:
            continue
        end = start + count
        up = linear(rows[start:end], w13[e].to(dtype))
        if w13_scale is not None:
            up = (up * w13_scale[e]).to(dtype)
        gate, value = up.chunk(2, -1)
        part = linear(silu(gate).mul_(value), w2[e].to(dtype))
        down[start:end] = part if w2_scale is None else part * w2_scale[e]
        start = end
    down = torch.empty_like(down).index_copy_(0, order, down).view(tokens, top_k, x.shape[1])
    return (down * topk_weights.to(wide).unsqueeze(-1)).sum(1).to(dtype)
