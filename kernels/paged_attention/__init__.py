"""Causal attention over a paged cache, prefills and decodes mixed."""

from torch import Tensor

from staticfire.kernels.dispatch import Backend, Registry
from staticfire.kernels.dtypes import cache_scales
from staticfire.kernels.paged_attention import reference as _reference
from staticfire.kernels.paged_attention import torch as _torch
from staticfire.kernels.paged_attention.metadata import AttentionMetadata, advance, make_metadata

__all__ = ["AttentionMetadata", "advance", "make_metadata", "paged_attention"]

_IMPL = Registry(
    "paged_attention",
    {"torch": _torch.paged_attention, "reference": _reference.paged_attention},
    {"triton": "staticfire.kernels.paged_attention.triton:paged_attention"},
)


def paged_attention(
    q: Tensor,
    kv_cache: Tensor,
    block_tables: Tensor,
    cu_seqlens_q: Tensor,
    seq_lens: Tensor,
    scale: float,
    *,
    k_scale: float = 1.0,
    v_scale: float = 1.0,
    metadata: AttentionMetadata | None = None,
    backend: Backend = "torch",
) -> Tensor:
    """Attend from the last tokens of each sequence to all of it that lies before them.

    The keys and values of the queries' own positions are in the cache already.

    Args:
        q: [T, Hq, d], the queries of each sequence one after the other; Hq is a multiple of Hk.
        kv_cache: [num_blocks, 2, block_size, Hk, d], keys then values; dense tokens, any page stride that is a
            multiple of Hk * d elements, in the dtype of `q` or in 8-bit floats (e4m3fn, e5m2). What lies past a
            sequence's end is never read.
        block_tables: int[B, max_blocks], block of each `block_size` positions.
        cu_seqlens_q: int[B + 1], first query of each sequence, then T.
        seq_lens: int[B], positions of each sequence, its queries included.
        scale: Factor of the scores, usually d ** -0.5.
        k_scale: What the keys of an 8-bit cache are multiplied by, as float32.
        v_scale: The same of its values.
        metadata: What `make_metadata` gave for this step, to share it between layers.
        backend: Which implementation runs.

    Returns:
        [T, Hq, d] in the dtype of `q`.

    Raises:
        ValueError: The cache's layout is unfit, a sequence does not fit its block table, `metadata` was made for
            another layout, a scale is no scale, or `backend` is unknown.
    """
    k_scale, v_scale = cache_scales("paged_attention", kv_cache, k_scale, v_scale)
    return _IMPL[backend](q, kv_cache, block_tables, cu_seqlens_q, seq_lens, scale, k_scale, v_scale, metadata)
