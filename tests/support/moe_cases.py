"""Inputs of a mixture of experts."""

from typing import Any

from kernel_cases import Maker
from staticfire.kernels.fused_moe import pack_experts
from staticfire.kernels.int8_quant import quantize_per_channel
from staticfire.kernels.topk_softmax import topk_softmax


def experts(
    make: Maker,
    tokens: int,
    count: int,
    top_k: int,
    hidden: int,
    inner: int,
    *,
    int8: bool = False,
    packed: bool = False,
) -> tuple[Any, ...]:
    """The positional arguments of `fused_moe`."""
    x = make(tokens, hidden)
    w13, w2 = make(count, 2 * inner, hidden, scale=hidden**-0.5), make(count, hidden, inner, scale=inner**-0.5)
    weights, ids = topk_softmax(make(tokens, count), top_k, False)
    scales: tuple[Any, ...] = (None, None)
    if int8:
        (w13, first), (w2, second) = quantize_per_channel(w13), quantize_per_channel(w2)
        scales = (first, second)
    if packed:
        w13, w2 = pack_experts(w13, w2)
    return x, w13, w2, weights, ids, *scales
