"""The contract of a group: the ranks that compute one model together."""

from typing import Protocol

import torch


class GroupError(Exception):
    """A rank waited for the others in vain: one of them died, hangs, or computes something else."""


class Group(Protocol):
    """This rank among those that hold one model.

    All ranks call the same operations in the same order with tensors of the same shape and dtype, and all get the
    same bits: what follows from a result, such as a router's choice, is then the same on every rank.

    Attributes:
        rank: From 0 to `size - 1`.
        size: Ranks in the group.
    """

    rank: int
    size: int

    def all_reduce(self, x: torch.Tensor) -> torch.Tensor:
        """The sum over all ranks, added in the order of ranks; `x` may be overwritten.

        Raises:
            GroupError: Another rank is gone, or late.
        """

    def all_gather(self, x: torch.Tensor) -> torch.Tensor:
        """All ranks' `x` side by side along the last dimension, in the order of ranks.

        Raises:
            GroupError: Another rank is gone, or late.
        """
