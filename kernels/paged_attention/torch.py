"""Paged attention: one gather of rows and one scaled-dot-product call for decodes of like length, and each prefill."""

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from staticfire.kernels.paged_attention.metadata import AttentionMetadata, Group, make_metadata
from staticfire.kernels.pages import rows_of
from staticfire.kernels.shapes import require_rows


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
    """See `staticfire.kernels.paged_attention.paged_attention`."""
    if metadata is None:
        metadata = make_metadata(kv_cache, block_tables, cu_seqlens_q, seq_lens, q.dtype)
    scale *= k_scale  # the scores are linear in the keys, and below the output in the values
    pool = rows_of(kv_cache, metadata.pages)
    decodes, room = metadata.decodes, metadata.room
    gathered = None if room is None else room.gather(kv_cache, metadata.pages, q.dtype)
    if len(decodes) == 1 and decodes[0].tokens is None:
        rows = _gather(pool, decodes[0], q.dtype) if gathered is None else gathered
        return _scaled(_decode(q, rows, decodes[0], scale), v_scale)
    require_rows("paged_attention", "q", q, cu_seqlens_q)
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    at = 0
    for group in decodes:
        assert group.tokens is not None
        end = at + len(group.rows)
        rows = _gather(pool, group, q.dtype) if gathered is None else gathered[at:end]
        out.index_copy_(0, group.tokens, _decode(q.index_select(0, group.tokens), rows, group, scale))
        at = end
    for group in metadata.prefills:
        out[group.begin : group.end] = _prefill(q[group.begin : group.end], pool, group, scale)
    return _scaled(out, v_scale)


def _scaled(out: Tensor, v_scale: float) -> Tensor:
    return out if v_scale == 1.0 else out.mul_(v_scale)


def _gather(pool: Tensor, group: Group, dtype: torch.dtype) -> Tensor:
    """Keys, then values, of a group: [2 * n * S, Hk, d]."""
    rows = pool.index_select(0, group.rows)
    return rows if rows.dtype is dtype else rows.to(dtype)


def _split(rows: Tensor, group: Group) -> tuple[Tensor, Tensor]:
    """Keys and values [n, Hk, S, d] of the rows of a group."""
    keys, values = rows.view(2, group.size, -1, *rows.shape[1:]).transpose(2, 3).unbind(0)
    return keys, values


def _decode(q: Tensor, rows: Tensor, group: Group, scale: float) -> Tensor:
    keys, values = _split(rows, group)
    # The query heads that share a key head stand where a prompt's queries would: no key is repeated.
    grouped = q.reshape(group.size, rows.shape[1], -1, rows.shape[2])
    out = scaled_dot_product_attention(grouped, keys, values, attn_mask=group.mask, scale=scale)
    return out.reshape(q.shape)


def _prefill(q: Tensor, pool: Tensor, group: Group, scale: float) -> Tensor:
    keys, values = _split(_gather(pool, group, q.dtype), group)
    out = scaled_dot_product_attention(
        q.transpose(0, 1).unsqueeze(0),
        keys,
        values,
        attn_mask=group.mask,
        is_causal=group.causal,
        scale=scale,
        enable_gqa=q.shape[1] != pool.shape[1],
    )
    return out.squeeze(0).transpose(0, 1)
