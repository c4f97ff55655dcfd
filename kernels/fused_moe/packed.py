"""Experts that keep their weights as oneDNN wants them, beside or instead of the plain tensors."""

import torch
from torch import Tensor

from staticfire.kernels.fused_moe.choice import choose
from staticfire.kernels.fused_moe.packing import pack_experts
from staticfire.kernels.fused_moe.torch import fused_moe, shape_of, sorted_by_expert
from staticfire.kernels.packed_linear import ALWAYS, PackedLinear, can_pack


class PackedExperts:
    """Experts of float32, for `fused_moe` on a CPU.

    Where the packed products are never the slower ones the plain tensors are let go.
    """

    def __init__(self, w13: Tensor, w2: Tensor) -> None:
        """Copy w13 [E, 2I, H] and w2 [E, H, I], for which `can_pack_experts` holds."""
        self.count = w13.shape[0]
        self.shape = tuple(w13.shape)
        self._up = [PackedLinear(matrix) for matrix in w13]
        self._down = [PackedLinear(matrix) for matrix in w2]
        alone = min(w13[0].numel(), w2[0].numel()) >= ALWAYS
        self._plain = None if alone else pack_experts(w13, w2)

    def up(self, expert: int, rows: Tensor) -> Tensor:
        """[n, H] -> [n, 2I]."""
        return self._up[expert](rows)

    def down(self, expert: int, rows: Tensor) -> Tensor:
        """[n, I] -> [n, H]."""
        return self._down[expert](rows)

    def plain(self) -> tuple[Tensor, Tensor]:
        """The tensors w13 and w2 as they were, made anew where they were let go."""
        if self._plain is not None:
            return self._plain
        return torch.stack([up.dense() for up in self._up]), torch.stack([down.dense() for down in self._down])

    def __call__(self, x: Tensor, topk_weights: Tensor, topk_ids: Tensor) -> Tensor:
        """What `fused_moe` gives for the plain tensors."""
        if self._plain is None or choose(shape_of(x, self.shape, topk_ids), packed=True) == "packed":
            return sorted_by_expert(x, self, topk_weights, topk_ids)
        return fused_moe(x, *self._plain, topk_weights, topk_ids, None, None)


def can_pack_experts(w13: Tensor, w2: Tensor) -> bool:
    """Whether these experts can be packed here and gain by it."""
    return can_pack(w13[0]) and can_pack(w2[0])
