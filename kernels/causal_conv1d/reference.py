"""Causal depthwise convolution, one token and one tap at a time.

Formula: y_t = act(b + sum_k w[:, k] x_{t - K + 1 + k}), where x at negative times is the sequence's state (its last
K - 1 inputs, oldest first) or zero; act is the identity or silu (Gu and Dao 2023, "Mamba", section 3.4; argument
meaning of Dao's `causal_conv1d`). The sum runs in float32 (float64 for float64).
"""

from typing import Any

import torch
from torch import Tensor

from staticfire.kernels.dtypes import compute_dtype


def _token(window: list[Tensor], weight: Tensor, bias: Tensor | None, activation: str | None, like: Tensor) -> Tensor:
    """Convolve one full window (K rows of width D, oldest first)."""
    wide = compute_dtype(like)
    total = torch.zeros(weight.shape[0], dtype=wide, device=like.device)
    for k, row in enumerate(window):
        total = total + weight[:, k].to(wide) * row.to(wide)
    if bias is not None:
        total = total + bias.to(wide)
    if activation == "silu":
        total = total / (1 + torch.exp(-total))
    return total.to(like.dtype)


def causal_conv1d_varlen(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    cu_seqlens: Tensor,
    conv_state: Tensor,
    state_indices: Tensor,
    has_initial_state: Tensor,
    activation: str | None,
    metadata: Any = None,  # noqa: ARG001 - derived from the other arguments, so nothing to read
) -> Tensor:
    """See `staticfire.kernels.causal_conv1d.causal_conv1d_varlen`."""
    history = weight.shape[1] - 1
    out = torch.zeros_like(x)
    starts = cu_seqlens.tolist()
    for b, slot in enumerate(state_indices.tolist()):
        begin, end = starts[b], starts[b + 1]
        if slot < 0 or begin == end:
            continue
        if bool(has_initial_state[b]):
            past = [conv_state[slot, :, k].clone() for k in range(history)]
        else:
            past = [torch.zeros_like(x[begin]) for _ in range(history)]
        for t in range(begin, end):
            window = [*past, x[t]]
            out[t] = _token(window, weight, bias, activation, x)
            past = window[1:]
        for k, row in enumerate(past):
            conv_state[slot, :, k] = row.to(conv_state.dtype)
    return out


def causal_conv1d_update(
    x: Tensor,
    conv_state: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    state_indices: Tensor,
    activation: str | None,
    slots: Any = None,  # noqa: ARG001 - derived from state_indices, so nothing to read
) -> Tensor:
    """See `staticfire.kernels.causal_conv1d.causal_conv1d_update`."""
    rows = x.shape[0]
    every = torch.arange(rows + 1)
    return causal_conv1d_varlen(
        x, weight, bias, every, conv_state, state_indices, torch.ones(rows, dtype=torch.bool), activation
    )
