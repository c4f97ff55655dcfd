"""Paged attention: one gather of rows and one scaled-dot-product call for decodes of like length, and each prefill."""

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from staticfire.kernels.paged_attention.metadata import AttentionMetadata, Group, make_metadata, split
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
    if room is None:
        step, parts = 0, tuple(_gather(pool, group, q.dtype) for group in decodes)
    else:
        step, parts = room.step, room.gather(kv_cache, metadata.pages, decodes, q.dtype)
    if len(decodes) == 1 and decodes[0].tokens is None:
        return _scaled(_decode(q, *parts[0], decodes[0], step, scale), v_scale)
    require_rows("paged_attention", "q", q, cu_seqlens_q)
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    for group, part in zip(decodes, parts, strict=True):
        assert group.tokens is not None
        out.index_copy_(0, group.tokens, _decode(q.index_select(0, group.tokens), *part, group, step, scale))
    for group in metadata.prefills:
        out[group.begin : group.end] = _prefill(q[group.begin : group.end], pool, group, scale)
    return _scaled(out, v_scale)


def _scaled(out: Tensor, v_scale: float) -> Tensor:
    return out if v_scale == 1.0 else out.mul_(v_scale)


def _gather(pool: Tensor, group: Group, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Keys and values [n, Hk, S, d] of a group."""
    rows = pool.index_select(0, group.rows)
    return split(rows if rows.dtype is dtype else rows.to(dtype), group)


def _decode(q: Tensor, keys: Tensor, values: Tensor, group: Group, step: int, scale: float) -> Tensor:
    # The query heads that share a key head stand where a prompt's queries would: no key is repeated.
    grouped = q.reshape(group.size, keys.shape[1], -1, keys.shape[3])
    longest = group.longest + step
    keys, values, mask = keys[:, :, :longest], values[:, :, :longest], None
    if not group.level:
        assert group.mask is not None
        mask = group.mask[..., :longest]
    out = scaled_dot_product_attention(grouped, keys, values, attn_mask=mask, scale=scale)
    return out.reshape(q.shape)


def _prefill(q: Tensor, pool: Tensor, group: Group, scale: float) -> Tensor:
    keys, values = _gather(pool, group, q.dtype)
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
