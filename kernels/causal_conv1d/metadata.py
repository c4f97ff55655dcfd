"""Where each row of a batch of sequences finds its history: built once a step, shared by every layer."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor


class ConvMetadata(NamedTuple):
    """Index lists over the *table* (tokens, then rows of history, then one row of zeros) and the *extended* rows.

    The extended rows are the sequences one after the other, each preceded by its width - 1 rows of history, so
    that one sliding window over all of them is the convolution of each.

    Attributes:
        source: int64[M], table row of each extended row.
        rows: int64[T], window of each token among the M - width + 1 windows; of a token that has none, 0.
        read: int64[r], slots whose state is history.
        write: int64[w], slots whose state is written.
        final: int64[w * (width - 1)], extended rows that make up the written states.
        dead: int64, tokens of padding sequences, whose output is zero; None if there are none.
    """

    source: Tensor
    rows: Tensor
    read: Tensor
    write: Tensor
    final: Tensor
    dead: Tensor | None


def make_metadata(cu_seqlens: Tensor, state_indices: Tensor, has_initial_state: Tensor, width: int) -> ConvMetadata:
    """Index lists for `causal_conv1d_varlen`.

    Args:
        cu_seqlens: int[B + 1], first token of each sequence, then T.
        state_indices: int[B], pool slot of each sequence; negative marks padding.
        has_initial_state: bool[B], whether a sequence continues from its slot.
        width: Taps of the convolution, K.

    Returns:
        The lists, on the device of `cu_seqlens`.
    """
    starts = np.asarray(cu_seqlens.tolist(), dtype=np.int64)
    slots = np.asarray(state_indices.tolist(), dtype=np.int64)
    initial = np.asarray(has_initial_state.tolist(), dtype=bool)
    lengths = np.diff(starts)
    tokens, history = int(starts[-1]), width - 1
    live = (lengths > 0) & (slots >= 0)
    reads = live & initial
    segments = np.where(live, lengths + history, 0)
    first = np.cumsum(segments) - segments
    owner = np.repeat(np.arange(lengths.size), segments)
    inside = np.arange(owner.size) - first[owner]
    zero_row = tokens + int(reads.sum()) * history
    state_row = tokens + (np.cumsum(reads) - 1) * history
    past = np.where(reads[owner], state_row[owner] + inside, zero_row)
    source = np.where(inside < history, past, starts[:-1][owner] + inside - history)
    rows = np.zeros(tokens, dtype=np.int64)
    real = inside >= history
    rows[source[real]] = np.flatnonzero(real) - history
    final = (first + segments - history)[live][:, None] + np.arange(history)
    dead = np.flatnonzero(np.repeat(slots < 0, lengths))
    device = cu_seqlens.device

    def move(values: np.ndarray) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(values)).to(device)

    return ConvMetadata(
        move(source),
        move(rows),
        move(slots[reads]),
        move(slots[live]),
        move(final.reshape(-1)),
        move(dead) if dead.size else None,
    )
