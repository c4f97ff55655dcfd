"""Causal self-attention over a paged cache of keys and values."""

import torch

from staticfire.engine.layers.batch import AttentionBatch, ForwardBatch
from staticfire.engine.layers.linear import Linear, row_parallel
from staticfire.engine.parallel.base import Group
from staticfire.engine.parallel.single import SINGLE
from staticfire.kernels.dispatch import Backend
from staticfire.kernels.paged_attention import paged_attention
from staticfire.kernels.reshape_and_cache import reshape_and_cache
from staticfire.kernels.rms_norm import rms_norm
from staticfire.kernels.rotary import make_metadata as rotary_metadata
from staticfire.kernels.rotary import rotary_embedding


class Attention:
    """Multi-head or grouped-query attention, with rotary positions or without any."""

    def __init__(
        self,
        qkv: torch.Tensor,
        out: torch.Tensor,
        heads: tuple[int, int, int],
        *,
        cos_sin: torch.Tensor | None = None,
        qkv_bias: torch.Tensor | None = None,
        out_bias: torch.Tensor | None = None,
        qk_norm: tuple[torch.Tensor, torch.Tensor, float] | None = None,
        group: Group = SINGLE,
    ) -> None:
        """Hold the weights; heads are those of this rank.

        Args:
            qkv: [(query heads + 2 * kv heads) * head_dim, hidden]: queries, keys, values.
            out: [hidden, query heads * head_dim].
            heads: (query heads, kv heads, head_dim).
            cos_sin: Rotary table [positions, head_dim]; None for a model without (Jamba).
            qkv_bias: Bias of `qkv`.
            out_bias: Bias of `out`.
            qk_norm: (query weight, key weight, eps) of RMS norms over head_dim (Qwen3).
            group: Ranks that hold the other heads.
        """
        self.qkv = Linear(qkv, qkv_bias)
        self.out = row_parallel(out, out_bias, group)
        self.query_heads, self.kv_heads, self.head_dim = heads
        self.cos_sin = cos_sin
        self.qk_norm = qk_norm
        self.scale = self.head_dim**-0.5
        self.group = -1
        self.kv_cache = torch.empty(0)

    def bind(self, group: int, kv_cache: torch.Tensor) -> None:
        """Say where this layer's keys and values are kept: [blocks, 2, block_size, kv heads, head_dim]."""
        self.group = group
        self.kv_cache = kv_cache

    def __call__(self, x: torch.Tensor, batch: ForwardBatch) -> torch.Tensor:
        """[tokens, hidden] -> [tokens, hidden]; writes the tokens' keys and values first."""
        where = batch.groups[self.group]
        assert isinstance(where, AttentionBatch)
        tokens = x.shape[0]
        qkv = self.qkv(x).view(tokens, -1, self.head_dim)
        q, k, v = qkv.split_with_sizes((self.query_heads, self.kv_heads, self.kv_heads), dim=1)
        if self.qk_norm is not None:
            q, k = self._normed(q, k, batch.backend)
        if self.cos_sin is not None:
            if batch.rotary is None:
                batch.rotary = rotary_metadata(batch.positions, self.cos_sin, q.dtype)
            q, k = rotary_embedding(q, k, batch.positions, self.cos_sin, metadata=batch.rotary, backend=batch.backend)
        cache = self.kv_cache
        reshape_and_cache(k, v, cache, where.slot_mapping, metadata=where.writes, backend=batch.backend)
        mixed = paged_attention(
            q,
            cache,
            where.block_tables,
            batch.cu_seqlens,
            batch.seq_lens,
            self.scale,
            metadata=where.reads,
            backend=batch.backend,
        )
        return self.out(mixed.reshape(tokens, -1))

    def _normed(self, q: torch.Tensor, k: torch.Tensor, backend: Backend) -> tuple[torch.Tensor, torch.Tensor]:
        assert self.qk_norm is not None
        q_weight, k_weight, eps = self.qk_norm
        q_flat, k_flat = q.reshape(-1, self.head_dim), k.reshape(-1, self.head_dim)
        q_normed = rms_norm(q_flat, q_weight, eps, backend=backend)
        k_normed = rms_norm(k_flat, k_weight, eps, backend=backend)
        return q_normed.view(q.shape), k_normed.view(k.shape)
