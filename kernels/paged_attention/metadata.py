"""What attention layers of one step share: rows to gather and masks. Built once a step."""

from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from staticfire.kernels.pages import PageGeometry, geometry, rows_of

Ints = npt.NDArray[np.int64]


SPLIT_ELEMENTS = 1 << 15
"""Padding, in elements of keys and values, that is worth one more group: what a group's calls cost, in memory traffic
(15 microseconds), is what so many elements cost to gather and to attend to."""

STEP = 15
"""Positions that index lists of decodes hold beyond the longest sequence: they serve so many further steps."""

KEPT_BYTES = 64 << 20
"""Most bytes of gathered keys and values that a batch of decodes keeps from step to step, over all layers."""


class Group(NamedTuple):
    """Sequences attended together.

    Attributes:
        tokens: int64[n] query tokens, or None when they are the slice [begin, end).
        begin: First query token.
        end: One past the last.
        size: Sequences, n.
        rows: int64[2 * n * S], rows of the keys of every position, then of the values. Positions past the end of
            a sequence name a row of its own, so that nothing unwritten is ever read.
        mask: Additive [n, 1, 1, S] (decode) or [1, 1, L, S] (prefill), 0 or -inf; None when nothing is hidden or
            when `causal` says it all.
        causal: Square lower-triangular attention: a prompt from its first token.
        longest: Positions of the longest sequence of decodes; S may be more. It grows with `Room.step`.
        level: Whether the sequences of decodes are equally long, so that nothing before `longest` is hidden.
    """

    tokens: Tensor | None
    begin: int
    end: int
    size: int
    rows: Tensor
    mask: Tensor | None
    causal: bool
    longest: int = 0
    level: bool = False


class Kept(NamedTuple):
    """Keys and values that were gathered for a layer.

    Attributes:
        step: `Room.step` at that time.
        buffer: [Hk * number of `Room.rows`, d]: what `parts` are views of.
        parts: Keys and values [n, Hk, S, d] of each group, dense but for the distance between the two.
    """

    step: int
    buffer: Tensor
    parts: tuple[tuple[Tensor, Tensor], ...]


@dataclass(slots=True)
class Room:
    """Where the positions of a batch of decodes go in the index lists, without making them anew.

    Attributes:
        rows: int64, the `rows` of all groups in one buffer, of which they are views.
        mask: The `mask` of all groups in one buffer.
        at: int64[2 * B], index in `rows` of each sequence's last key, then of their values.
        heads: int64[2 * B * Hk], the same in `Kept.buffer`, for each head.
        hidden: int64[B], index in `mask` of each sequence's last position.
        steps: How many more positions there is room for.
        step: How many positions were added.
        latest: int64[2 * B], the rows that were added last; None before the first.
        kept: What was gathered, by the address of the layer.
        kept_bytes: How much that is.
    """

    rows: Tensor
    mask: Tensor
    at: Tensor
    heads: Tensor
    hidden: Tensor
    steps: int
    step: int = 0
    latest: Tensor | None = None
    kept: dict[int, Kept] = field(default_factory=dict)
    kept_bytes: int = 0

    def gather(
        self, kv_cache: Tensor, pages: PageGeometry, groups: tuple[Group, ...], dtype: torch.dtype
    ) -> tuple[tuple[Tensor, Tensor], ...]:
        """Keys and values of each group; of those that were kept only the last position is read.

        Args:
            kv_cache: A layer. What it holds for positions before the last is what it held a step ago.
            pages: Its geometry.
            groups: Those of the metadata.
            dtype: Of the result, the same in every step.
        """
        pool, layer = rows_of(kv_cache, pages), kv_cache.data_ptr()
        kept = self.kept.get(layer)
        if kept is not None and self.latest is not None and kept.step == self.step - 1:
            latest = pool.index_select(0, self.latest)
            kept.buffer.index_copy_(0, self.heads, _as(latest, dtype).view(-1, latest.shape[2]))
            self.kept[layer] = Kept(self.step, kept.buffer, kept.parts)
            return kept.parts
        rows = _as(pool.index_select(0, self.rows), dtype)
        sizes = [len(group.rows) for group in groups]
        parts = tuple(split(part, group) for part, group in zip(rows.split_with_sizes(sizes), groups, strict=True))
        size = rows.numel() * rows.element_size()
        if kept is None and self.kept_bytes + size > KEPT_BYTES:
            return parts
        if kept is None:
            self.kept_bytes += size
        return self._keep(layer, rows, parts)

    def _keep(
        self, layer: int, rows: Tensor, parts: tuple[tuple[Tensor, Tensor], ...]
    ) -> tuple[tuple[Tensor, Tensor], ...]:
        """Lay each head's positions out one after the other, which attention reads nearly twice as quickly."""
        buffer = torch.empty_like(rows).view(-1, rows.shape[2])
        places = buffer.split_with_sizes([2 * keys.numel() // keys.shape[3] for keys, _ in parts])
        dense = []
        for place, (keys, values) in zip(places, parts, strict=True):
            both = place.view(2, *keys.shape)
            both[0], both[1] = keys, values
            dense.append((both[0], both[1]))
        self.kept[layer] = Kept(self.step, buffer, tuple(dense))
        return tuple(dense)


def split(rows: Tensor, group: Group) -> tuple[Tensor, Tensor]:
    """Keys and values [n, Hk, S, d] of a group from what its `rows` name, [2 * n * S, Hk, d]."""
    keys, values = rows.view(2, group.size, -1, *rows.shape[1:]).transpose(2, 3).unbind(0)
    return keys, values


def _as(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    return tensor if tensor.dtype is dtype else tensor.to(dtype)


class AttentionMetadata(NamedTuple):
    """One step of attention.

    Attributes:
        pages: Geometry of the layers that this serves.
        decodes: Sequences with one query, together with those of similar length.
        prefills: Sequences with more, one by one.
        room: For `advance`; None unless every sequence has one query.
    """

    pages: PageGeometry
    decodes: tuple[Group, ...]
    prefills: tuple[Group, ...]
    room: Room | None = None


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
    tables, starts, lengths = require_fit(pages, block_tables, cu_seqlens_q, seq_lens)
    queries = starts[1:] - starts[:-1]
    device = kv_cache.device
    if queries.size and queries.max() == 1 == queries.min():
        groups, room = _decode_groups(kv_cache, pages, tables, None, lengths, dtype)
        return AttentionMetadata(pages, groups, (), room)
    single = np.flatnonzero(queries == 1)
    decodes: tuple[Group, ...] = ()
    if single.size:
        decodes, _ = _decode_groups(kv_cache, pages, tables[single], starts[single], lengths[single], dtype)
    prefills = tuple(
        _prefill_group(pages, tables[b], int(starts[b]), int(queries[b]), int(lengths[b]), dtype, device)
        for b in np.flatnonzero(queries > 1)
    )
    return AttentionMetadata(pages, decodes, prefills)


def require_fit(
    pages: PageGeometry, block_tables: Tensor, cu_seqlens_q: Tensor, seq_lens: Tensor
) -> tuple[Ints, Ints, Ints]:
    """Refuse sequences that their block tables do not cover. Waits for the device.

    Args:
        pages: Geometry of the cache.
        block_tables: int[B, max_blocks].
        cu_seqlens_q: int[B + 1].
        seq_lens: int[B].

    Returns:
        The three, on the CPU.

    Raises:
        ValueError: A sequence has more queries than positions, or more positions than its block table covers.
    """
    tables, starts, lengths = (_array(tensor) for tensor in (block_tables, cu_seqlens_q, seq_lens))
    queries = starts[1:] - starts[:-1]
    wrong = (queries > lengths) | (lengths > tables.shape[1] * pages.size)
    if wrong.any():
        b = int(np.flatnonzero(wrong)[0])
        raise ValueError(
            f"paged_attention: sequence {b} has {queries[b]} queries and {lengths[b]} positions, and its block table "
            f"covers {tables.shape[1] * pages.size}; queries <= positions <= covered"
        )
    return tables, starts, lengths


def _array(tensor: Tensor) -> Ints:
    array: Ints = tensor.to(device="cpu", dtype=torch.int64).numpy()
    return array


def _rows(pages: PageGeometry, tables: Ints, longest: int) -> Ints:
    """Row of the key at each position below `longest` of sequences with `tables` [n, max_blocks]: [n, longest]."""
    blocks = -(-longest // pages.size)
    rows = (tables[:, :blocks] * pages.block)[:, :, None] + np.arange(pages.size)
    return rows.reshape(tables.shape[0], blocks * pages.size)[:, :longest]


def _with_values(pages: PageGeometry, keys: Ints, device: torch.device) -> Tensor:
    """Rows of keys, then of their values, flat."""
    both = np.empty((2, *keys.shape), np.int64)
    both[0] = keys
    np.add(keys, pages.plane, out=both[1])
    return torch.from_numpy(both.reshape(-1)).to(device)


def _cuts(lengths: Ints, padding: int) -> list[int]:
    """Where to split rising `lengths` so that each split saves more than `padding` padded positions."""
    saved = np.arange(lengths.size) * (lengths[-1] - np.concatenate((lengths[:1], lengths[:-1])))
    cut = int(saved.argmax())
    if saved[cut] <= padding:
        return [lengths.size]
    return [*_cuts(lengths[:cut], padding), *(cut + more for more in _cuts(lengths[cut:], padding))]


def _decode_groups(
    kv_cache: Tensor, pages: PageGeometry, tables: Ints, tokens: Ints | None, lengths: Ints, dtype: torch.dtype
) -> tuple[tuple[Group, ...], Room]:
    """Groups of sequences with one query each; `tokens` None means that query b belongs to sequence b."""
    device, row, count = kv_cache.device, kv_cache.shape[3] * kv_cache.shape[4], lengths.size
    order = np.argsort(lengths, kind="stable")
    cuts = _cuts(lengths[order], SPLIT_ELEMENTS // (2 * row))
    owners = None
    if len(cuts) > 1:
        owners = torch.from_numpy(order if tokens is None else tokens[order]).to(device)
    else:
        order = np.arange(count)
        owners = None if tokens is None else torch.from_numpy(tokens).to(device)
    spans = [((begin, end), int(lengths[order[begin:end]].max()) + STEP) for begin, end in pairwise((0, *cuts))]
    total = sum((end - begin) * width for (begin, end), width in spans)
    rows = np.empty(2 * total, np.int64)
    past = np.empty(total, np.bool_)
    first, hidden, widths = np.empty((2, count), np.int64), np.empty(count, np.int64), np.empty(count, np.int64)
    done, views = 0, []
    for (begin, end), width in spans:
        members, size = order[begin:end], (end - begin) * width
        ends = lengths[members, None]
        beyond = past[done : done + size].reshape(-1, width)
        np.greater_equal(np.arange(width), ends, out=beyond)
        both = rows[2 * done : 2 * (done + size)].reshape(2, -1, width)
        _fill_keys(pages, tables[members], both[0])
        np.copyto(both[0], both[0][np.arange(end - begin), ends[:, 0] - 1][:, None], where=beyond)
        np.add(both[0], pages.plane, out=both[1])
        starts = np.arange(end - begin) * width
        first[:, members] = 2 * done + starts, 2 * done + size + starts
        hidden[members] = done + starts + ends[:, 0] - 1
        widths[members] = width
        views.append((begin, end, width, done, size, int(ends.min()) == width - STEP))
        done += size
    room_rows = torch.from_numpy(rows).to(device)
    mask = torch.zeros(total, dtype=dtype).masked_fill_(torch.from_numpy(past), -torch.inf).to(device)
    groups = tuple(
        Group(
            None if owners is None else owners[begin:end],
            0,
            end - begin,
            end - begin,
            room_rows[2 * at : 2 * (at + size)],
            mask[at : at + size].view(end - begin, 1, 1, width),
            False,
            width - STEP,
            level,
        )
        for begin, end, width, at, size, level in views
    )
    heads = np.arange(kv_cache.shape[3])
    in_buffer = (first * heads.size + lengths - 1)[:, :, None] + widths[:, None] * heads
    in_rows = first + lengths - 1
    at, at_heads, at_hidden = (torch.from_numpy(a.reshape(-1)).to(device) for a in (in_rows, in_buffer, hidden))
    return groups, Room(room_rows, mask, at, at_heads, at_hidden, STEP)


def _fill_keys(pages: PageGeometry, tables: Ints, out: Ints) -> None:
    """Row of the key at each position of sequences with `tables` [n, max_blocks], into `out` [n, S]."""
    width = out.shape[1]
    blocks = -(-width // pages.size)
    if tables.shape[1] < blocks:
        tables = np.pad(tables, ((0, 0), (0, blocks - tables.shape[1])))
    rows = (tables[:, :blocks] * pages.block)[:, :, None] + np.arange(pages.size)
    out[:] = rows.reshape(tables.shape[0], blocks * pages.size)[:, :width]


def advance(metadata: AttentionMetadata, key_rows: Tensor, value_rows: Tensor) -> bool:
    """Let the same sequences go on by one position, in place: a decode step then makes no index lists at all.

    What the cache holds for the positions so far must not change as long as the metadata is used: it may have been
    gathered already.

    Args:
        metadata: Of the step before, all of whose sequences had one query.
        key_rows: int64[B], row of each sequence's new key, as in `reshape_and_cache.CacheWrites`.
        value_rows: int64[B], the same of its value.

    Returns:
        Whether there was room; if not, nothing has changed and `make_metadata` has to be called.
    """
    room = metadata.room
    if room is None or room.steps == 0:
        return False
    room.at += 1
    room.heads += 1
    room.hidden += 1
    room.latest = torch.cat((key_rows, value_rows))
    room.rows.index_copy_(0, room.at, room.latest)
    room.mask.index_fill_(0, room.hidden, 0)
    room.steps -= 1
    room.step += 1
    return True


def _prefill_group(
    pages: PageGeometry,
    table: Ints,
    begin: int,
    queries: int,
    length: int,
    dtype: torch.dtype,
    device: torch.device,
) -> Group:
    rows = _with_values(pages, _rows(pages, table[None], length), device)
    mask = None
    if queries < length:
        mask = torch.full((queries, length), -torch.inf, dtype=dtype, device=device).triu_(length - queries + 1)
        mask = mask.unsqueeze(0).unsqueeze(0)
    return Group(None, begin, begin + queries, 1, rows, mask, queries == length)
