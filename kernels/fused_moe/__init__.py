"""The experts of a mixture: gated feed-forward blocks, each token through its chosen ones."""

from torch import Tensor

from staticfire.kernels.dispatch import Backend, Registry
from staticfire.kernels.fused_moe import reference as _reference
from staticfire.kernels.fused_moe import torch as _torch
from staticfire.kernels.fused_moe.packing import pack_experts

__all__ = ["fused_moe", "pack_experts"]

_IMPL = Registry(
    "fused_moe",
    {"torch": _torch.fused_moe, "reference": _reference.fused_moe},
    {"triton": "staticfire.kernels.fused_moe.triton:fused_moe"},
)


def fused_moe(
    x: Tensor,
    w13: Tensor,
    w2: Tensor,
    topk_weights: Tensor,
    topk_ids: Tensor,
    w13_scale: Tensor | None = None,
    w2_scale: Tensor | None = None,
    *,
    backend: Backend = "torch",
) -> Tensor:
    """Return the weighted sum of each token's experts.

    Args:
        x: [T, H].
        w13: [E, 2I, H], gate rows first; int8 when scales are given. Quickest with memory [H, E, 2I].
        w2: [E, H, I]; int8 when scales are given. Quickest with memory [E, I, H] (`pack_experts`).
        topk_weights: [T, k], float32, or float64 for float64 `x`.
        topk_ids: int64[T, k], distinct in a row.
        w13_scale: float32[E, 2I] or None. Products are accumulated on the integers and scaled once.
        w2_scale: float32[E, H] or None; given with `w13_scale`.
        backend: Which implementation runs.

    Returns:
        [T, H] in the dtype of `x`. An expert that a token did not choose cannot influence it.

    Raises:
        ValueError: Only one scale is given, or `backend` is unknown.
    """
    if (w13_scale is None) != (w2_scale is None):
        raise ValueError("fused_moe: w13_scale and w2_scale are given together or not at all; got one of them")
    return _IMPL[backend](x, w13, w2, topk_weights, topk_ids, w13_scale, w2_scale)
