"""No quantization: weights stay in the compute dtype."""

import torch

from staticfire.engine.quantization.base import ExpertWeights
from staticfire.kernels.dispatch import Backend


class Unquantized:
    """Keeps what it is given."""

    name = "none"
    needs_whole_rows = False

    def __init__(self, backend: Backend = "torch") -> None:
        """Need no op of any backend."""

    def experts(self, w13: torch.Tensor, w2: torch.Tensor) -> ExpertWeights:
        """Return the weights unchanged."""
        return ExpertWeights(w13, w2)
