"""The order in which a batch of sequences is scanned: built once a step, shared by every layer."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor


class ScanMetadata(NamedTuple):
    """Tokens regrouped by time, longest sequence first, so that step t is one slice without padding.

    Attributes:
        tokens: int64[T'], packed token of each scanned row; None when that is 0, 1, 2, ... for all T.
        inverse: int64[T], scanned row of each packed token; None when `tokens` is None or some tokens are dead.
        counts: Sequences still running at each time step, never rising.
        slots: int64[n], slot of each sequence, longest first.
        read: int64[r], slots that hold an initial state.
        read_rows: int64[r], the sequence (in scan order) of each; None when all have one.
    """

    tokens: Tensor | None
    inverse: Tensor | None
    counts: tuple[int, ...]
    slots: Tensor
    read: Tensor
    read_rows: Tensor | None


def make_metadata(cu_seqlens: Tensor, state_indices: Tensor, has_initial_state: Tensor) -> ScanMetadata:
    """Scan order for `selective_scan_varlen`.

    Args:
        cu_seqlens: int[B + 1], first token of each sequence, then T.
        state_indices: int[B], pool slot of each sequence; negative marks padding.
        has_initial_state: bool[B], whether a sequence continues from its slot.

    Returns:
        The order, on the device of `cu_seqlens`.
    """
    starts = np.asarray(cu_seqlens.tolist(), dtype=np.int64)
    slots = np.asarray(state_indices.tolist(), dtype=np.int64)
    initial = np.asarray(has_initial_state.tolist(), dtype=bool)
    lengths = np.diff(starts)
    live = np.flatnonzero((lengths > 0) & (slots >= 0))
    order = live[np.argsort(-lengths[live], kind="stable")]
    sizes = lengths[order]
    rank = np.repeat(np.arange(order.size), sizes)
    time = np.arange(rank.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    tokens = (starts[:-1][order][rank] + time)[np.lexsort((rank, time))]
    counts = np.bincount(time).tolist() if time.size else []
    device = cu_seqlens.device

    def move(values: np.ndarray) -> Tensor:
        return torch.from_numpy(values).to(device)

    total = int(starts[-1])
    identity = bool(np.array_equal(tokens, np.arange(total)))
    inverse = None
    if not identity and tokens.size == total:
        inverse = move(np.argsort(tokens, kind="stable"))
    read_rows = np.flatnonzero(initial[order])
    return ScanMetadata(
        None if identity else move(tokens),
        inverse,
        tuple(counts),
        move(slots[order]),
        move(slots[order][read_rows]),
        None if read_rows.size == order.size else move(read_rows),
    )
