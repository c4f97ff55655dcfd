"""Expert routing, one program a token: all its logits stay in registers."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from staticfire.kernels.interpreter import require_device
from staticfire.kernels.shapes import sizes


@triton.jit
def _topk_softmax(
    logits,
    weights,
    ids,
    row_stride,
    column_stride,
    experts,
    TOP_K: tl.constexpr,
    RENORMALIZE: tl.constexpr,
    WIDE: tl.constexpr,
    EXPERTS: tl.constexpr,
    SLOTS: tl.constexpr,
):
    token = tl.program_id(0).to(tl.int64)
    expert = tl.arange(0, EXPERTS)
    inside = expert < experts
    row = tl.load(logits + token * row_stride + expert.to(tl.int64) * column_stride, mask=inside, other=0).to(WIDE)
    # A NaN would equal nothing, and no expert would be found. As an infinity it too makes every weight NaN.
    row = tl.where(row != row, float("inf"), row)
    row = tl.where(inside, row, float("-inf"))
    exps = tl.exp(row - tl.max(row, 0))
    probabilities = exps / tl.sum(exps, 0)
    slot = tl.arange(0, SLOTS)
    chosen_weight = tl.zeros([SLOTS], dtype=WIDE)
    chosen_id = tl.zeros([SLOTS], dtype=tl.int64)
    free = inside
    for k in tl.static_range(TOP_K):
        best = tl.max(tl.where(free, row, float("-inf")), 0)
        first = tl.min(tl.where(free & (row == best), expert, EXPERTS), 0)
        picked = expert == first
        weight = tl.sum(tl.where(picked, probabilities, 0), 0)
        chosen_weight = tl.where(slot == k, weight, chosen_weight)
        chosen_id = tl.where(slot == k, first.to(tl.int64), chosen_id)
        free = free & (expert != first)
    if RENORMALIZE:
        chosen_weight = chosen_weight / tl.sum(chosen_weight, 0)
    tl.store(weights + token * TOP_K + slot, chosen_weight, mask=slot < TOP_K)
    tl.store(ids + token * TOP_K + slot, chosen_id, mask=slot < TOP_K)


def topk_softmax(router_logits: Tensor, top_k: int, renormalize: bool) -> tuple[Tensor, Tensor]:
    """See `staticfire.kernels.topk_softmax.topk_softmax`."""
    require_device(router_logits)
    tokens, experts = sizes("topk_softmax", "router_logits", router_logits, "T, E")
    double = router_logits.dtype is torch.float64
    weights = router_logits.new_empty(tokens, top_k, dtype=torch.float64 if double else torch.float32)
    ids = router_logits.new_empty(tokens, top_k, dtype=torch.int64)
    if tokens:
        _topk_softmax[(tokens,)](
            router_logits,
            weights,
            ids,
            *router_logits.stride(),
            experts,
            TOP_K=top_k,
            RENORMALIZE=renormalize,
            WIDE=tl.float64 if double else tl.float32,
            EXPERTS=triton.next_power_of_2(experts),
            SLOTS=triton.next_power_of_2(top_k),
        )
    return weights, ids
