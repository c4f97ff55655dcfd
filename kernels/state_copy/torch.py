"""State copies as one gather and one scatter where order cannot matter."""

import torch
from torch import Tensor

from staticfire.kernels.state_copy import reference


def state_copy(state: Tensor, src: Tensor, dst: Tensor) -> None:
    """See `staticfire.kernels.state_copy.state_copy`."""
    pairs = [(s, d) for s, d in zip(src.tolist(), dst.tolist(), strict=True) if s >= 0 and d >= 0]
    if not pairs:
        return
    sources, targets = zip(*pairs, strict=True)
    distinct = set(targets)
    if len(distinct) < len(targets) or not distinct.isdisjoint(sources):
        reference.state_copy(state, src, dst)
        return
    moved = state.index_select(0, torch.tensor(sources, device=state.device))
    state.index_copy_(0, torch.tensor(targets, device=state.device), moved)
