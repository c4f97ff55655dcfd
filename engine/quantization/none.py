"""No quantization: weights stay in the compute dtype."""

import torch

from staticfire.engine.quantization.base import ExpertWeights


class Unquantized:
    """Keeps what it is given."""

    name = "none"
    needs_whole_rows = False

    def experts(self, w13: torch.Tensor, w2: torch.Tensor) -> ExpertWeights:
        """Return the weights unchanged."""
        return ExpertWeights(w13, w2)
