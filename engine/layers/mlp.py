"""Gated MLP: down(silu(gate x) * up x), with gate and up in one matrix."""

import torch
from torch.nn.functional import linear

from staticfire.engine.layers.batch import ForwardBatch
from staticfire.kernels.silu_and_mul import silu_and_mul


class GatedMlp:
    """A dense feed-forward layer."""

    def __init__(self, gate_up: torch.Tensor, down: torch.Tensor) -> None:
        """Hold the weights.

        Args:
            gate_up: [2 * intermediate, hidden], gate rows first.
            down: [hidden, intermediate].
        """
        self.gate_up = gate_up
        self.down = down

    def __call__(self, x: torch.Tensor, batch: ForwardBatch) -> torch.Tensor:  # noqa: ARG002 - one signature for all
        """[tokens, hidden] -> [tokens, hidden]."""
        return linear(silu_and_mul(linear(x, self.gate_up)), self.down)
