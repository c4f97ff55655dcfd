"""Cutting a rank's part out of a whole tensor."""

import torch

from staticfire.engine.parallel.split import Part


def cut(whole: torch.Tensor, part: Part) -> torch.Tensor:
    """The slices of `part`, in their order, as a tensor of its own."""
    return torch.cat([whole.narrow(part.dim, start, stop - start) for start, stop in part.ranges], dim=part.dim)
