"""The contract of a weight quantization method."""

from typing import NamedTuple, Protocol

import torch


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
    """What happens to weights at load, one layer at a time, so that only one layer is ever held twice."""

    name: str

    def experts(self, w13: torch.Tensor, w2: torch.Tensor) -> ExpertWeights:
        """Turn the full-precision experts of one layer into those that are kept."""
