"""Paged attention, prompts and decodes in one launch: one program a tile of queries and a key head.

The query heads that share a key head are rows of one tile beside the tile's tokens, so that each key is loaded once
for all of them and a decode fills a tensor core. Softmax is taken as positions come by, in float32 and powers of two
(Milakov and Gimelshein 2018; Dao 2023, "FlashAttention-2"); decodes of few sequences share the positions of each
among several programs, and a second kernel merges what they found.
"""

import math
from functools import cache

import torch
import triton
import triton.language as tl
from torch import Tensor

from staticfire.kernels.dtypes import FP8, compute_dtype
from staticfire.kernels.interpreter import interpreted, require_device
from staticfire.kernels.jit import operand, owner_of, require_fp8
from staticfire.kernels.narrow import narrow
from staticfire.kernels.paged_attention.metadata import AttentionMetadata, require_fit
from staticfire.kernels.paged_attention.tiles import Launch, choose
from staticfire.kernels.pages import geometry, require_strides
from staticfire.kernels.shapes import require_rows, require_shapes, sizes


@triton.jit
def _attend(
    query,
    acc,
    peak,
    total,
    cache,
    table,
    begin,
    end,
    last_visible,
    factor,
    cache_block,
    cache_plane,
    cache_token,
    table_column,
    DTYPE: tl.constexpr,
    WIDE: tl.constexpr,
    BLOCK_SIZE: tl.constexpr,
    SIZE: tl.constexpr,
    D: tl.constexpr,
    POSITIONS: tl.constexpr,
    UPCAST: tl.constexpr,
    MASKED: tl.constexpr,
):
    """Take in the keys and values at POSITIONS positions from `begin`; unless MASKED, every row sees them all."""
    position = begin + tl.arange(0, POSITIONS)
    column = tl.arange(0, D)
    inside = position < end
    real = column < SIZE
    if MASKED:
        block = tl.load(table + (position // BLOCK_SIZE).to(tl.int64) * table_column, mask=inside, other=0)
        key_mask = inside[None, :] & real[:, None]
        value_mask = inside[:, None] & real[None, :]
    else:
        block = tl.load(table + (position // BLOCK_SIZE).to(tl.int64) * table_column)
        key_mask = real[:, None]
        value_mask = real[None, :]
    row = block.to(tl.int64) * cache_block + (position % BLOCK_SIZE).to(tl.int64) * cache_token
    keys = tl.load(cache + row[None, :] + column[:, None], mask=key_mask, other=0.0)
    scores = tl.dot(query, operand(keys, DTYPE, UPCAST), input_precision="ieee", out_dtype=WIDE) * factor
    if MASKED:
        scores = tl.where(position[None, :] <= last_visible[:, None], scores, float("-inf"))
    higher = tl.maximum(peak, tl.max(scores, 1))
    # A row that has seen nothing yet has no peak, and -inf less -inf is no number.
    origin = tl.where(higher == float("-inf"), 0.0, higher)
    weights = tl.exp2(scores - origin[:, None])
    shrink = tl.exp2(peak - origin)
    values = tl.load(cache + cache_plane + row[:, None] + column[None, :], mask=value_mask, other=0.0)
    acc = tl.dot(
        operand(narrow(weights, DTYPE), DTYPE, UPCAST),
        operand(values, DTYPE, UPCAST),
        acc * shrink[:, None],
        input_precision="ieee",
        out_dtype=WIDE,
    )
    return acc, higher, total * shrink + tl.sum(weights, 1)


@triton.jit
def _paged_attention(
    q,
    cache,
    tables,
    cu_seqlens,
    seq_lens,
    out,
    logs,
    k_scale,
    v_scale,
    q_token,
    q_head,
    q_column,
    cache_block,
    cache_plane,
    cache_token,
    cache_head,
    table_row,
    table_column,
    tokens,
    heads,
    sequences,
    FACTOR: tl.constexpr,
    WIDE: tl.constexpr,
    BLOCK_SIZE: tl.constexpr,
    GROUP: tl.constexpr,
    SIZE: tl.constexpr,
    D: tl.constexpr,
    ROWS: tl.constexpr,
    TOKENS: tl.constexpr,
    POSITIONS: tl.constexpr,
    SPLITS: tl.constexpr,
    UPCAST: tl.constexpr,
):
    """One tile of TOKENS queries with GROUP heads each, and one of SPLITS shares of their positions.

    FACTOR is log2(e) times the factor of the scores. `out` is [SPLITS, tokens, heads, SIZE]; `logs`, for more than one
    split, [SPLITS, tokens, heads], the base-2 logarithm of each share of the normaliser.
    """
    dtype: tl.constexpr = q.dtype.element_ty
    sequence, begin, end, first = owner_of(tl.program_id(0), cu_seqlens, sequences, TOKENS)
    if first < end:
        key_head = tl.program_id(1).to(tl.int64)
        length = tl.load(seq_lens + sequence).to(tl.int32)
        context = length - (end - begin)
        row = tl.arange(0, ROWS)
        token = first + row // GROUP
        real = (row < TOKENS * GROUP) & (token < end)
        wide_token = token.to(tl.int64)
        head = key_head * GROUP + row % GROUP
        column = tl.arange(0, D)
        mask = real[:, None] & (column[None, :] < SIZE)
        place = wide_token[:, None] * q_token + head[:, None] * q_head + column[None, :].to(tl.int64) * q_column
        query = operand(tl.load(q + place, mask=mask, other=0), dtype, UPCAST)

        last = context + tl.minimum(first + TOKENS, end) - begin
        last_visible = tl.where(real, context + token - begin, last - 1)
        share = tl.cdiv(tl.cdiv(last, SPLITS), POSITIONS) * POSITIONS
        low = tl.minimum(tl.program_id(2) * share, last)
        high = tl.minimum(low + share, last)
        everyone = tl.minimum(context + first - begin + 1, high)
        unmasked = low + tl.maximum(everyone - low, 0) // POSITIONS * POSITIONS
        factor = tl.full([], FACTOR, WIDE)
        if k_scale is not None:
            factor *= k_scale
        pages = cache + key_head * cache_head
        table = tables + sequence.to(tl.int64) * table_row
        acc = tl.zeros([ROWS, D], dtype=WIDE)
        peak = tl.full([ROWS], float("-inf"), dtype=WIDE)
        total = tl.zeros([ROWS], dtype=WIDE)
        for position in range(low, unmasked, POSITIONS):
            acc, peak, total = _attend(
                query, acc, peak, total, pages, table, position, high, last_visible, factor,
                cache_block, cache_plane, cache_token, table_column,
                dtype, WIDE, BLOCK_SIZE, SIZE, D, POSITIONS, UPCAST, False,
            )  # fmt: skip
        for position in range(unmasked, high, POSITIONS):
            acc, peak, total = _attend(
                query, acc, peak, total, pages, table, position, high, last_visible, factor,
                cache_block, cache_plane, cache_token, table_column,
                dtype, WIDE, BLOCK_SIZE, SIZE, D, POSITIONS, UPCAST, True,
            )  # fmt: skip
        acc = acc / tl.where(total == 0, 1.0, total)[:, None]
        if v_scale is not None:
            acc = acc * v_scale
        split = tl.program_id(2).to(tl.int64)
        line = (split * tokens + wide_token) * heads + head
        tl.store(out + line[:, None] * SIZE + column[None, :], narrow(acc, out.dtype.element_ty), mask=mask)
        if SPLITS > 1:
            tl.store(logs + line, peak + tl.log2(total), mask=real)


@triton.jit
def _merge(parts, logs, out, lines, SIZE: tl.constexpr, D: tl.constexpr, SPLITS: tl.constexpr, S: tl.constexpr):
    """One query and head: the mean of its shares, each weighted by its part of the normaliser."""
    line = tl.program_id(0).to(tl.int64)
    split = tl.arange(0, S)
    column = tl.arange(0, D)
    place = split.to(tl.int64) * lines + line
    log = tl.load(logs + place, mask=split < SPLITS, other=float("-inf"))
    weight = tl.exp2(log - tl.max(log, 0))
    mask = (split < SPLITS)[:, None] & (column < SIZE)[None, :]
    part = tl.load(parts + place[:, None] * SIZE + column[None, :], mask=mask, other=0)
    mean = tl.sum(part * weight[:, None], 0) / tl.sum(weight, 0)
    tl.store(out + line * SIZE + column, narrow(mean, out.dtype.element_ty), mask=column < SIZE)


@cache
def _units(device: torch.device) -> int:
    return 1 if device.type == "cpu" else int(torch.cuda.get_device_properties(device).multi_processor_count)


def paged_attention(
    q: Tensor,
    kv_cache: Tensor,
    block_tables: Tensor,
    cu_seqlens_q: Tensor,
    seq_lens: Tensor,
    scale: float,
    k_scale: float = 1.0,
    v_scale: float = 1.0,
    metadata: AttentionMetadata | None = None,
) -> Tensor:
    """See `staticfire.kernels.paged_attention.paged_attention`; `metadata` only vouches for the sequences' lengths."""
    require_device(q)
    require_fp8(kv_cache)
    tokens, heads, size = sizes("paged_attention", "q", q, "T, Hq, d")
    blocks, _, block_size, key_heads, _ = sizes("paged_attention", "kv_cache", kv_cache, "blocks, 2, block_size, Hk, d")
    sequences = len(seq_lens)
    require_shapes(
        "paged_attention",
        kv_cache=(kv_cache, (blocks, 2, block_size, key_heads, size)),
        block_tables=(block_tables, (sequences, *block_tables.shape[1:2])),
        cu_seqlens_q=(cu_seqlens_q, (sequences + 1,)),
        seq_lens=(seq_lens, (sequences,)),
    )
    if heads % key_heads:
        raise ValueError(f"paged_attention: Hq is a multiple of Hk, which is {key_heads}; got {heads}")
    if metadata is None:
        require_fit(geometry(kv_cache), block_tables, cu_seqlens_q, seq_lens)
        require_rows("paged_attention", "q", q, cu_seqlens_q)
    else:
        require_strides(kv_cache, metadata.pages)
    out = q.new_empty(q.shape)
    if not out.numel():
        return out
    group, upcast = heads // key_heads, interpreted() and q.dtype is torch.bfloat16
    wide, fp8, amd = compute_dtype(q), kv_cache.dtype in FP8, torch.version.hip is not None
    capacity = block_tables.shape[1] * block_size
    shapes = (tokens, sequences, key_heads, group, size, q.element_size(), capacity)
    tiles = choose(Launch(*shapes, _units(q.device), amd, interpreted()))
    parts, logs, splits = out, None, tiles.splits
    if splits > 1:
        parts, logs = (q.new_empty(shape, dtype=wide) for shape in ((splits, *q.shape), (splits, tokens, heads)))
    per_tile = tiles.rows // group
    _paged_attention[tokens // per_tile + sequences, key_heads, splits](
        q,
        kv_cache,
        block_tables,
        cu_seqlens_q.contiguous(),
        seq_lens.contiguous(),
        parts,
        logs,
        k_scale if fp8 else None,
        v_scale if fp8 else None,
        *q.stride(),
        *kv_cache.stride()[:4],
        *block_tables.stride(),
        tokens,
        heads,
        sequences,
        FACTOR=scale * math.log2(math.e),
        WIDE=tl.float64 if wide is torch.float64 else tl.float32,
        BLOCK_SIZE=block_size,
        GROUP=group,
        SIZE=size,
        D=max(16, triton.next_power_of_2(size)),
        ROWS=tiles.rows,
        TOKENS=per_tile,
        POSITIONS=tiles.positions,
        SPLITS=splits,
        UPCAST=upcast,
        num_warps=tiles.num_warps,
        num_stages=tiles.num_stages,
    )
    if logs is not None:
        lines, pow2 = tokens * heads, triton.next_power_of_2
        _merge[(lines,)](parts, logs, out, lines, SIZE=size, D=pow2(size), SPLITS=splits, S=pow2(splits))
    return out
