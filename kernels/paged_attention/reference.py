"""Paged attention, one query token and one head at a time.

Formula: the query at position p of a sequence attends to positions 0..p of it, out = softmax(scale q K^T) V
(Vaswani et al. 2017, equation 1); query head h uses key head h // (Hq / Hk). Position p lives in block
block_tables[b][p // block_size] at offset p % block_size (Kwon et al. 2023, "PagedAttention"). Computed in float32
(float64 for float64), rounded once. A cache of 8-bit floats holds keys divided by k_scale and values by v_scale.
"""

from typing import Any

import torch
from torch import Tensor

from staticfire.kernels.dtypes import compute_dtype


def paged_attention(
    q: Tensor,
    kv_cache: Tensor,
    block_tables: Tensor,
    cu_seqlens_q: Tensor,
    seq_lens: Tensor,
    scale: float,
    k_scale: float = 1.0,
    v_scale: float = 1.0,
    metadata: Any = None,  # noqa: ARG001 - derived from the other arguments, so nothing to read
) -> Tensor:
    """See `staticfire.kernels.paged_attention.paged_attention`."""
    wide = compute_dtype(q)
    block_size, shared = kv_cache.shape[2], q.shape[1] // kv_cache.shape[3]
    starts = cu_seqlens_q.tolist()
    out = torch.zeros(q.shape, dtype=q.dtype, device=q.device)
    for b, length in enumerate(seq_lens.tolist()):
        queries = starts[b + 1] - starts[b]
        table = block_tables[b].tolist()
        pages = [kv_cache[table[p // block_size], :, p % block_size].to(wide) for p in range(length)]
        for i in range(queries):
            visible = pages[: length - queries + i + 1]
            keys = torch.stack([page[0] * k_scale for page in visible])
            values = torch.stack([page[1] * v_scale for page in visible])
            for head in range(q.shape[1]):
                scores = (keys[:, head // shared] * q[starts[b] + i, head].to(wide)).sum(-1) * scale
                weights = torch.exp(scores - scores.max())
                mixed = (weights[:, None] * values[:, head // shared]).sum(0) / weights.sum()
                out[starts[b] + i, head] = mixed.to(q.dtype)
    return out
