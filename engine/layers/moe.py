"""Mixture of experts: softmax router, top-k, fused experts."""

import torch

from staticfire.engine.layers.batch import ForwardBatch
from staticfire.engine.layers.linear import Linear
from staticfire.engine.parallel.base import Group
from staticfire.engine.parallel.single import SINGLE
from staticfire.engine.quantization.base import ExpertWeights
from staticfire.kernels.fused_moe import fused_moe, pack_experts
from staticfire.kernels.fused_moe.packed import PackedExperts, can_pack_experts
from staticfire.kernels.topk_softmax import topk_softmax


class SparseMoe:
    """A feed-forward layer of several experts, `top_k` of which see each token."""

    def __init__(
        self,
        layer: int,
        router: torch.Tensor,
        experts: ExpertWeights,
        top_k: int,
        *,
        renormalize: bool,
        group: Group = SINGLE,
    ) -> None:
        """Hold the weights.

        Args:
            layer: Index of the decoder layer, for whoever watches the routing.
            router: [experts, hidden].
            experts: Their weights, quantized or not.
            top_k: Experts per token.
            renormalize: Whether the chosen weights are scaled to sum to 1 (Jamba leaves them).
            group: Ranks that hold the other inner columns of every expert; all choose alike.
        """
        self.layer = layer
        self.router = Linear(router)
        plain = experts.w13_scale is None and can_pack_experts(experts.w13, experts.w2)
        self._packed = PackedExperts(experts.w13, experts.w2) if plain else None
        self._experts = None if plain else _laid_out(experts)
        self.top_k = top_k
        self.renormalize = renormalize
        self._all_reduce = None if group.size == 1 else group.all_reduce

    @property
    def experts(self) -> ExpertWeights:
        """Their weights as they were given; made anew, once, where only packed ones are kept."""
        if self._experts is None:
            assert self._packed is not None
            self._experts = ExpertWeights(*self._packed.plain(), None, None)
        return self._experts

    def __call__(self, x: torch.Tensor, batch: ForwardBatch) -> torch.Tensor:
        """[tokens, hidden] -> [tokens, hidden]."""
        router_logits = self.router(x)
        weights, ids = topk_softmax(router_logits, self.top_k, self.renormalize, backend=batch.backend)
        if batch.routing is not None:
            batch.routing(self.layer, ids, weights, router_logits)
        if self._packed is not None and batch.backend == "torch":
            mixed = self._packed(x, weights, ids)
        else:
            w13, w2, w13_scale, w2_scale = self.experts
            mixed = fused_moe(x, w13, w2, weights, ids, w13_scale, w2_scale, backend=batch.backend)
        return mixed if self._all_reduce is None else self._all_reduce(mixed)


def _laid_out(experts: ExpertWeights) -> ExpertWeights:
    """The same weights in the memory order that the kernel is quickest with: [H, E, 2I] and [E, I, H]."""
    w13, w2 = pack_experts(experts.w13, experts.w2)
    return experts._replace(w13=w13, w2=w2)
