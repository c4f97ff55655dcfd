"""Gated MLP: down(silu(gate x) * up x), with gate and up in one matrix."""

import torch

from staticfire.engine.layers.batch import ForwardBatch
from staticfire.engine.layers.linear import Linear, row_parallel
from staticfire.engine.parallel.base import Group
from staticfire.engine.parallel.single import SINGLE
from staticfire.kernels.silu_and_mul import silu_and_mul


class GatedMlp:
    """A dense feed-forward layer."""

    def __init__(self, gate_up: torch.Tensor, down: torch.Tensor, group: Group = SINGLE) -> None:
        """Hold the weights.

        Args:
            gate_up: [2 * intermediate, hidden], gate rows first.
            down: [hidden, intermediate].
            group: Ranks that hold the other inner columns.
        """
        self.gate_up = Linear(gate_up)
        self.down = row_parallel(down, None, group)

    def __call__(self, x: torch.Tensor, batch: ForwardBatch) -> torch.Tensor:
        """[tokens, hidden] -> [tokens, hidden]."""
        return self.down(silu_and_mul(self.gate_up(x), backend=batch.backend))
