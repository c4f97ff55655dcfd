"""Mixture of experts: all experts for every token where that is cheapest, else tokens sorted by expert (`choice`)."""

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor
from torch.nn.functional import linear, silu

from staticfire.kernels.dtypes import compute_dtype
from staticfire.kernels.fused_moe.choice import Shape, choose


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
    if choose(shape_of(x, w13.shape, topk_ids, convert=w13.dtype is not x.dtype)) == "dense":
        return dense(x, w13, w2, topk_weights, topk_ids, w13_scale, w2_scale)
    return sorted_by_expert(x, PlainExperts(w13, w2, w13_scale, w2_scale), topk_weights, topk_ids)


def shape_of(x: Tensor, experts: Sequence[int], topk_ids: Tensor, *, convert: bool = False) -> Shape:
    """What `choose` is asked: `experts` is the shape of w13."""
    tokens, top_k = topk_ids.shape
    count, wide, hidden = experts
    return Shape(tokens, count, top_k, hidden, wide // 2, x.dtype, convert, torch.get_num_threads())


def dense(
    x: Tensor,
    w13: Tensor,
    w2: Tensor,
    topk_weights: Tensor,
    topk_ids: Tensor,
    w13_scale: Tensor | None,
    w2_scale: Tensor | None,
) -> Tensor:
    """Let every expert run on every token, and weigh those that were not chosen by zero."""
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


class Experts(Protocol):
    """The two products of an expert."""

    count: int

    def up(self, expert: int, rows: Tensor) -> Tensor:
        """[n, H] -> [n, 2I]."""

    def down(self, expert: int, rows: Tensor) -> Tensor:
        """[n, I] -> [n, H]."""


class PlainExperts:
    """Experts in the tensors that `fused_moe` takes."""

    def __init__(self, w13: Tensor, w2: Tensor, w13_scale: Tensor | None, w2_scale: Tensor | None) -> None:
        """Hold them."""
        self.count = w13.shape[0]
        self._w13, self._w2, self._w13_scale, self._w2_scale = w13, w2, w13_scale, w2_scale

    def up(self, expert: int, rows: Tensor) -> Tensor:
        """See `Experts`."""
        up = linear(rows, self._w13[expert].to(rows.dtype))
        return up if self._w13_scale is None else (up * self._w13_scale[expert]).to(rows.dtype)

    def down(self, expert: int, rows: Tensor) -> Tensor:
        """See `Experts`."""
        down = linear(rows, self._w2[expert].to(rows.dtype))
        return down if self._w2_scale is None else down * self._w2_scale[expert]


def sorted_by_expert(x: Tensor, experts: Experts, topk_weights: Tensor, topk_ids: Tensor) -> Tensor:
    """Let every chosen expert run on the tokens that chose it, and add up as `fused_moe` does."""
    tokens, top_k = topk_ids.shape
    dtype, wide = x.dtype, compute_dtype(x)
    weights = topk_weights.to(wide).unsqueeze(-1)
    if tokens == 1:
        parts = [_expert(experts, e, x) for e in topk_ids[0].tolist()]
        return (torch.stack(parts, 1).to(wide) * weights).sum(1).to(dtype)
    flat = topk_ids.reshape(-1)
    order = torch.argsort(flat, stable=True)
    counts = torch.bincount(flat, minlength=experts.count).tolist()
    rows = x.index_select(0, order // top_k)
    down = torch.empty(rows.shape, dtype=wide, device=x.device)
    start = 0
    for e, count in enumerate(counts):
        if count == 0:
            continue
        end = start + count
        down[start:end] = _expert(experts, e, rows[start:end])
        start = end
    down = torch.empty_like(down).index_copy_(0, order, down).view(tokens, top_k, x.shape[1])
    return (down * weights).sum(1).to(dtype)


def _expert(experts: Experts, expert: int, rows: Tensor) -> Tensor:
    gate, value = experts.up(expert, rows).chunk(2, -1)
    return experts.down(expert, silu(gate).mul_(value))
