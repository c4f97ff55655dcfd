"""Batches for paged attention, in caches where all but the sequences' own keys and values is poison."""

from collections.abc import Sequence

import torch
from hypothesis import strategies as st
from torch import Tensor

from kernel_cases import Maker
from staticfire.kernels.testing import poisoned

sequence = st.tuples(st.integers(0, 6), st.integers(0, 12)).map(lambda s: (s[0], s[0] + s[1]))
decode = st.integers(1, 12).map(lambda n: (1, n))
batches = st.one_of(st.lists(sequence, max_size=4), st.lists(decode, max_size=4))
"""Queries and positions of each sequence."""


def batch(
    make: Maker,
    sequences: Sequence[tuple[int, int]],
    heads: tuple[int, int],
    block_size: int,
    padding: int = 0,
    *,
    size: int = 8,
    cache_dtype: torch.dtype | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, list[Tensor]]:
    """Queries, a poisoned cache that holds just the sequences' keys and values, and the tables that find them.

    Table entries past a sequence's end name a block that is all poison.

    Returns:
        (q, kv_cache, block_tables, cu_seqlens_q, seq_lens, the keys and values of each sequence in order)
    """
    query_heads, key_heads = heads
    dtype = cache_dtype or make.dtype
    covered = [-(-length // block_size) for _, length in sequences]
    order = torch.randperm(sum(covered) + 2, generator=make.generator).tolist()
    page = (2 * block_size + padding) * key_heads * size
    buffer = poisoned((len(order) + 1) * page).to(dtype)
    strides = (page, block_size * key_heads * size, key_heads * size, size, 1)
    cache = buffer.as_strided((len(order), 2, block_size, key_heads, size), strides)
    wide = torch.full((len(sequences), max([*covered, 1]) + 2), order[0], dtype=torch.int32)
    tables = wide[:, 1:-1] if make.sliced else wide[:, 1:-1].t().contiguous().t()
    lines = []
    for b, (_, length) in enumerate(sequences):
        line = make(length, 2, key_heads, size).to(dtype)
        for p in range(length):
            if p % block_size == 0:
                tables[b, p // block_size] = order.pop()
            cache[int(tables[b, p // block_size]), :, p % block_size] = line[p]
        lines.append(line)
    q = make(sum(n for n, _ in sequences), query_heads, size)
    cu = torch.tensor([0, *(n for n, _ in sequences)]).cumsum(0)
    return q, cache, tables, cu, torch.tensor([n for _, n in sequences]), lines
