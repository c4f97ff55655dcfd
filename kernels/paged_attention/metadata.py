"""What attention layers of one step share: rows to gather and masks. Built once a step."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from staticfire.kernels.pages import PageGeometry, geometry


class Group(NamedTuple):
    """Sequences attended together.

    Attributes:
        tokens: int64[n * L] query tokens, or None when they are the slice [begin, end).
        begin: First query token.
        end: One past the last.
        size: Sequences, n.
        rows: int64[2 * n * S], rows of the keys of every position, then of the values. Positions past the end of
            a sequence name its last row, so that nothing unwritten is ever read.
        mask: Additive [n, 1, 1, S] (decode) or [1, 1, L, S] (prefill), 0 or -inf; None when nothing is hidden or
            when `causal` says it all.
        causal: Square lower-triangular attention: a prompt from its first token.
    """

    tokens: Tensor | None
    begin: int
    end: int
    size: int
    rows: Tensor
    mask: Tensor | None
    causal: bool


class AttentionMetadata(NamedTuple):
    """One step of attention.

    Attributes:
        pages: Geometry of the layers that this serves.
        decode: Sequences with one query, all together; None if there are none.
        prefills: Sequences with more, one by one.
    """

    pages: PageGeometry
    decode: Group | None
    prefills: tuple[Group, ...]


def make_metadata(
    kv_cache: Tensor, block_tables: Tensor, cu_seqlens_q: Tensor, seq_lens: Tensor, dtype: torch.dtype
) -> AttentionMetadata:
    """Rows and masks of a step.

    Args:
        kv_cache: Any layer of the cache, [num_blocks, 2, block_size, Hk, d].
        block_tables: int[B, max_blocks].
        cu_seqlens_q: int[B + 1], first query token of each sequence, then T.
        seq_lens: int[B], positions of each sequence, the queries included.
        dtype: dtype of the queries.

    Returns:
        The metadata, on the device of `kv_cache`.

    Raises:
        ValueError: The layer's layout is unfit, or a sequence has more queries than positions, or more positions
            than its block table covers.
    """
    pages = geometry(kv_cache)
    starts = np.asarray(cu_seqlens_q.tolist(), dtype=np.int64)
    lengths = np.asarray(seq_lens.tolist(), dtype=np.int64)
    tables = block_tables.to(device="cpu", dtype=torch.int64).numpy()
    queries = np.diff(starts)
    wrong = np.flatnonzero((queries > lengths) | (lengths > tables.shape[1] * pages.size))
    if wrong.size:
        b = int(wrong[0])
        raise ValueError(
            f"paged_attention: sequence {b} has {queries[b]} queries and {lengths[b]} positions, and its block table "
            f"covers {tables.shape[1] * pages.size}; queries <= positions <= covered"
        )
    device = kv_cache.device
    single = np.flatnonzero(queries == 1)
    decode = None
    if single.size:
        decode = _decode_group(pages, tables[single], starts[single], lengths[single], int(starts[-1]), dtype, device)
    prefills = tuple(
        _prefill_group(pages, tables[b], int(starts[b]), int(queries[b]), int(lengths[b]), dtype, device)
        for b in np.flatnonzero(queries > 1)
    )
    return AttentionMetadata(pages, decode, prefills)


def _rows(pages: PageGeometry, tables: np.ndarray, positions: np.ndarray, device: torch.device) -> Tensor:
    """Rows of the keys, then of the values, at `positions` [n, S] of sequences with `tables` [n, max_blocks]."""
    blocks, offsets = np.divmod(positions, pages.size)
    keys = np.take_along_axis(tables, blocks, 1) * pages.block + offsets
    return torch.from_numpy(np.concatenate((keys, keys + pages.plane)).reshape(-1)).to(device)


def _decode_group(
    pages: PageGeometry,
    tables: np.ndarray,
    tokens: np.ndarray,
    lengths: np.ndarray,
    total: int,
    dtype: torch.dtype,
    device: torch.device,
) -> Group:
    longest = int(lengths.max())
    positions = np.arange(longest)
    rows = _rows(pages, tables, np.minimum(positions, lengths[:, None] - 1), device)
    mask = None
    if int(lengths.min()) < longest:
        hidden = torch.from_numpy(positions >= lengths[:, None]).to(device)
        mask = torch.zeros(hidden.shape, dtype=dtype, device=device).masked_fill_(hidden, -torch.inf)
        mask = mask.unsqueeze(1).unsqueeze(1)
    every = tokens.size == total
    return Group(None if every else torch.from_numpy(tokens).to(device), 0, total, tokens.size, rows, mask, False)


def _prefill_group(
    pages: PageGeometry,
    table: np.ndarray,
    begin: int,
    queries: int,
    length: int,
    dtype: torch.dtype,
    device: torch.device,
) -> Group:
    rows = _rows(pages, table[None], np.arange(length)[None], device)
    mask = None
    if queries < length:
        mask = torch.full((queries, length), -torch.inf, dtype=dtype, device=device).triu_(length - queries + 1)
        mask = mask.unsqueeze(0).unsqueeze(0)
    return Group(None, begin, begin + queries, 1, rows, mask, queries == length)
