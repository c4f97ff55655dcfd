"""Pool slots of a batch, prepared once a step and shared by every recurrent layer."""

from typing import NamedTuple

import torch
from torch import Tensor


class Slots(NamedTuple):
    """Where the rows of a batch keep their state.

    Attributes:
        indices: int64[n], the slots that exist, all >= 0.
        rows: int64[n], the batch rows that own them; None when every row has a slot.
    """

    indices: Tensor
    rows: Tensor | None


def make_slots(state_indices: Tensor) -> Slots:
    """Split a batch into rows that have a state and padding rows (negative index).

    Args:
        state_indices: int[B], slot of each row; negative marks a padding row. Two rows must not share a slot.

    Returns:
        The slots of the rows that are no padding.
    """
    indices = state_indices.to(torch.int64)
    present = indices >= 0
    if bool(present.all()):
        return Slots(indices, None)
    rows = present.nonzero().squeeze(1)
    return Slots(indices.index_select(0, rows), rows)
