"""The contract of a weight quantization method."""

from typing import NamedTuple, Protocol

import torch

from staticfire.engine.parallel.base import Group
from staticfire.engine.parallel.cut import cut
from staticfire.engine.parallel.split import part


class ExpertWeights(NamedTuple):
    """The experts of one layer as the fused kernel wants them.

    Attributes:
        w13: [experts, 2 * intermediate, hidden], gate rows first; compute dtype or int8.
        w2: [experts, hidden, intermediate]; compute dtype or int8.
        w13_scale: float32 [experts, 2 * intermediate] for int8 weights, else None.
        w2_scale: float32 [experts, hidden] for int8 weights, else None.
    """

    w13: torch.Tensor
    w2: torch.Tensor
    w13_scale: torch.Tensor | None = None
    w2_scale: torch.Tensor | None = None


class QuantizationMethod(Protocol):
    """What happens to weights at load, one layer at a time, so that only one layer is ever held twice.

    Attributes:
        name: Its name in the configuration.
        needs_whole_rows: Whether what becomes of a weight depends on all weights of its row, so that a rank must not
            quantize its part alone.
    """

    name: str
    needs_whole_rows: bool

    def experts(self, w13: torch.Tensor, w2: torch.Tensor) -> ExpertWeights:
        """Turn the full-precision experts of one layer into those that are kept."""


def split_experts(experts: ExpertWeights, group: Group) -> ExpertWeights:
    """This rank's inner columns of experts that were quantized whole; scales of whole rows go to every rank."""
    inner = experts.w2.shape[2]
    both, columns = part(1, 2 * inner, group, stacked=2), part(2, inner, group)
    if both is None or columns is None:
        return experts
    scale = experts.w13_scale
    return ExpertWeights(
        cut(experts.w13, both), cut(experts.w2, columns), None if scale is None else cut(scale, both), experts.w2_scale
    )
