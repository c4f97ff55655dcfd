"""Mixture of experts in four launches: sort, gate and up projections with their product, down projection, mean.

Token-expert pairs are sorted by expert, and a program finds the expert of its tile in the experts' first pairs: there
is no padded list, and no row that stands for no token. Products accumulate in float32; int8 weights are multiplied as
the integers that they are, which every dtype holds exactly, and each channel's sum by its scale.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from staticfire.kernels.dtypes import compute_dtype
from staticfire.kernels.interpreter import interpreted, require_device
from staticfire.kernels.jit import operand, owner_of
from staticfire.kernels.narrow import narrow
from staticfire.kernels.shapes import require_shapes, sizes
from staticfire.kernels.tiles import product_tiles


@triton.jit
def _sort(ids, order, starts, pairs, experts, BLOCK: tl.constexpr):
    """Place the pairs of one expert, in their order, after those of the experts before it."""
    expert = tl.program_id(0)
    place = tl.arange(0, BLOCK)
    before = tl.zeros([BLOCK], tl.int32)
    for begin in range(0, pairs, BLOCK):
        pair = begin + place
        chosen = tl.load(ids + pair, mask=pair < pairs, other=experts)
        before += (chosen < expert).to(tl.int32)
    following = tl.sum(before, 0)
    tl.store(starts + expert, following)
    for begin in range(0, pairs, BLOCK):
        pair = begin + place
        chosen = tl.load(ids + pair, mask=pair < pairs, other=experts)
        mine = chosen == expert
        rank = tl.cumsum(mine.to(tl.int32), 0)
        tl.store(order + following + rank - 1, pair, mask=mine)
        following += tl.sum(mine.to(tl.int32), 0)
    if expert == experts - 1:
        tl.store(starts + experts, following)


@triton.jit
def _gate_up(
    x,
    w,
    scale,
    starts,
    order,
    act,
    x_token,
    x_channel,
    w_expert,
    w_row,
    w_channel,
    experts,
    hidden,
    inner,
    TOP_K: tl.constexpr,
    WIDE: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    INNER: tl.constexpr,
    UPCAST: tl.constexpr,
):
    """silu(W1 x) * (W3 x) of ROWS sorted pairs and COLUMNS of the inner channels, into `act` [pairs, inner]."""
    expert, _, end, first = owner_of(tl.program_id(0), starts, experts, ROWS)
    if first < end:
        dtype: tl.constexpr = x.dtype.element_ty
        row = first + tl.arange(0, ROWS)
        real = row < end
        token = (tl.load(order + row, mask=real, other=0) // TOP_K).to(tl.int64)
        column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
        inside = column < inner
        wide_column = column.to(tl.int64)
        channel = tl.arange(0, INNER)
        x_place = x + token[:, None] * x_token + channel[None, :].to(tl.int64) * x_channel
        w_place = w + expert.to(tl.int64) * w_expert + channel[:, None].to(tl.int64) * w_channel
        gate_place = w_place + wide_column[None, :] * w_row
        up_place = w_place + (wide_column + inner)[None, :] * w_row
        x_step = tl.full([], INNER, tl.int64) * x_channel
        w_step = tl.full([], INNER, tl.int64) * w_channel
        gate = tl.zeros([ROWS, COLUMNS], dtype=WIDE)
        up = tl.zeros([ROWS, COLUMNS], dtype=WIDE)
        for begin in range(0, hidden, INNER):
            left = channel < hidden - begin
            w_mask = left[:, None] & inside[None, :]
            values = operand(tl.load(x_place, mask=real[:, None] & left[None, :], other=0), dtype, UPCAST)
            gate_w = operand(tl.load(gate_place, mask=w_mask, other=0), dtype, UPCAST)
            up_w = operand(tl.load(up_place, mask=w_mask, other=0), dtype, UPCAST)
            gate = tl.dot(values, gate_w, gate, input_precision="ieee", out_dtype=WIDE)
            up = tl.dot(values, up_w, up, input_precision="ieee", out_dtype=WIDE)
            x_place += x_step
            gate_place += w_step
            up_place += w_step
        if scale is not None:
            line = scale + expert.to(tl.int64) * 2 * inner + wide_column
            gate *= tl.load(line, mask=inside, other=0)[None, :]
            up *= tl.load(line + inner, mask=inside, other=0)[None, :]
        product = gate / (1 + tl.exp(-gate)) * up
        place = act + row.to(tl.int64)[:, None] * inner + wide_column[None, :]
        tl.store(place, narrow(product, dtype), mask=real[:, None] & inside[None, :])


@triton.jit
def _down(
    act,
    w,
    scale,
    starts,
    order,
    down,
    w_expert,
    w_row,
    w_channel,
    experts,
    inner,
    hidden,
    WIDE: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    INNER: tl.constexpr,
    UPCAST: tl.constexpr,
):
    """W2 act of ROWS sorted pairs and COLUMNS channels, back in the pairs' own places of `down` [pairs, hidden]."""
    expert, _, end, first = owner_of(tl.program_id(0), starts, experts, ROWS)
    if first < end:
        dtype: tl.constexpr = act.dtype.element_ty
        row = first + tl.arange(0, ROWS)
        real = row < end
        column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
        inside = column < hidden
        wide_column = column.to(tl.int64)
        channel = tl.arange(0, INNER)
        act_place = act + row.to(tl.int64)[:, None] * inner + channel[None, :]
        w_place = w + expert.to(tl.int64) * w_expert + channel[:, None].to(tl.int64) * w_channel
        w_place += wide_column[None, :] * w_row
        w_step = tl.full([], INNER, tl.int64) * w_channel
        total = tl.zeros([ROWS, COLUMNS], dtype=WIDE)
        for begin in range(0, inner, INNER):
            left = channel < inner - begin
            values = operand(tl.load(act_place, mask=real[:, None] & left[None, :], other=0), dtype, UPCAST)
            weights = operand(tl.load(w_place, mask=left[:, None] & inside[None, :], other=0), dtype, UPCAST)
            total = tl.dot(values, weights, total, input_precision="ieee", out_dtype=WIDE)
            act_place += INNER
            w_place += w_step
        if scale is not None:
            line = scale + expert.to(tl.int64) * hidden + wide_column
            total *= tl.load(line, mask=inside, other=0)[None, :]
        pair = tl.load(order + row, mask=real, other=0).to(tl.int64)
        tl.store(down + pair[:, None] * hidden + wide_column[None, :], total, mask=real[:, None] & inside[None, :])


@triton.jit
def _mean(down, weights, out, hidden, TOP_K: tl.constexpr, WIDE: tl.constexpr, BLOCK: tl.constexpr):
    """Sum of one token's experts, each times its weight, for BLOCK channels."""
    token = tl.program_id(0).to(tl.int64)
    channel = (tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)).to(tl.int64)
    inside = channel < hidden
    total = tl.zeros([BLOCK], dtype=WIDE)
    for k in tl.static_range(TOP_K):
        weight = tl.load(weights + token * TOP_K + k).to(WIDE)
        total += weight * tl.load(down + (token * TOP_K + k) * hidden + channel, mask=inside, other=0)
    tl.store(out + token * hidden + channel, narrow(total, out.dtype.element_ty), mask=inside)


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
    require_device(x)
    tokens, top_k = sizes("fused_moe", "topk_ids", topk_ids, "T, k")
    experts, hidden, inner = sizes("fused_moe", "w2", w2, "E, H, I")
    require_shapes(
        "fused_moe",
        x=(x, (tokens, hidden)),
        w13=(w13, (experts, 2 * inner, hidden)),
        topk_weights=(topk_weights, (tokens, top_k)),
        w13_scale=(w13_scale, (experts, 2 * inner)),
        w2_scale=(w2_scale, (experts, hidden)),
    )
    pairs, wide = tokens * top_k, compute_dtype(x)
    out = x.new_empty(tokens, hidden)
    if not out.numel():
        return out
    small, upcast = interpreted(), interpreted() and x.dtype is torch.bfloat16
    amd, item, rows = torch.version.hip is not None, x.element_size(), pairs // experts
    accumulator = tl.float64 if wide is torch.float64 else tl.float32
    order = topk_ids.new_empty(pairs, dtype=torch.int32)
    starts = topk_ids.new_empty(experts + 1, dtype=torch.int32)
    _sort[(experts,)](topk_ids.contiguous(), order, starts, pairs, experts, BLOCK=16 if small else 1024)

    act = x.new_empty(pairs, inner)
    tiles = product_tiles(rows, item, pair=True, amd=amd, interpreted=small)
    _gate_up[pairs // tiles.rows + experts, triton.cdiv(inner, tiles.columns)](
        x,
        w13,
        None if w13_scale is None else w13_scale.contiguous(),
        starts,
        order,
        act,
        *x.stride(),
        *w13.stride(),
        experts,
        hidden,
        inner,
        TOP_K=top_k,
        WIDE=accumulator,
        ROWS=tiles.rows,
        COLUMNS=tiles.columns,
        INNER=tiles.inner,
        UPCAST=upcast,
        num_warps=tiles.num_warps,
        num_stages=tiles.num_stages,
    )
    down = x.new_empty(pairs, hidden, dtype=wide)
    tiles = product_tiles(rows, item, pair=False, amd=amd, interpreted=small)
    _down[pairs // tiles.rows + experts, triton.cdiv(hidden, tiles.columns)](
        act,
        w2,
        None if w2_scale is None else w2_scale.contiguous(),
        starts,
        order,
        down,
        *w2.stride(),
        experts,
        inner,
        hidden,
        WIDE=accumulator,
        ROWS=tiles.rows,
        COLUMNS=tiles.columns,
        INNER=tiles.inner,
        UPCAST=upcast,
        num_warps=tiles.num_warps,
        num_stages=tiles.num_stages,
    )
    block = min(16 if small else 1024, triton.next_power_of_2(hidden))
    _mean[tokens, triton.cdiv(hidden, block)](
        down, topk_weights.contiguous(), out, hidden, TOP_K=top_k, WIDE=accumulator, BLOCK=block
    )
    return out
