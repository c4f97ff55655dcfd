"""Routing of a mixture of experts: softmax over the experts, then the best k."""

from torch import Tensor

from staticfire.kernels.dispatch import Backend, Registry
from staticfire.kernels.topk_softmax import reference as _reference
from staticfire.kernels.topk_softmax import torch as _torch

__all__ = ["topk_softmax"]

_IMPL = Registry(
    "topk_softmax",
    {"torch": _torch.topk_softmax, "reference": _reference.topk_softmax},
    {"triton": "staticfire.kernels.topk_softmax.triton:topk_softmax"},
)


def topk_softmax(
    router_logits: Tensor, top_k: int, renormalize: bool, *, backend: Backend = "torch"
) -> tuple[Tensor, Tensor]:
    """Choose the experts of each token.

    Args:
        router_logits: [T, E].
        top_k: Experts a token uses, 1 <= top_k <= E.
        renormalize: Whether the chosen weights are divided by their sum (Jamba does not).
        backend: Which implementation runs.

    Returns:
        (weights[T, k], ids int64[T, k]), best first; of equal logits the lower id comes first. Weights are
        float32, or float64 for float64 logits. In a row with a NaN all weights are NaN, and its experts are any k.

    Raises:
        ValueError: `top_k` is out of range, or `backend` is unknown.
    """
    if not 1 <= top_k <= router_logits.shape[-1]:
        raise ValueError(f"topk_softmax: top_k is in [1, {router_logits.shape[-1]}] (experts); got {top_k}")
    return _IMPL[backend](router_logits, top_k, renormalize)
