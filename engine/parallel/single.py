"""A group of one. Layers do not even call it: a layer that is whole is made without a group."""

from typing import Final

import torch

from staticfire.engine.parallel.base import Group


class SingleRank:
    """The only rank: what it has is all there is."""

    rank = 0
    size = 1

    def all_reduce(self, x: torch.Tensor) -> torch.Tensor:
        """`x` itself."""
        return x

    def all_gather(self, x: torch.Tensor) -> torch.Tensor:
        """`x` itself."""
        return x


SINGLE: Final[Group] = SingleRank()
