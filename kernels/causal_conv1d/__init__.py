"""Short causal depthwise convolution with a rolling state, over packed sequences and one token at a time."""

from typing import Literal

from torch import Tensor

from staticfire.kernels.causal_conv1d import reference as _reference
from staticfire.kernels.causal_conv1d import torch as _torch
from staticfire.kernels.causal_conv1d.metadata import ConvMetadata, make_metadata
from staticfire.kernels.dispatch import Backend, Registry
from staticfire.kernels.slots import Slots

__all__ = ["ConvMetadata", "causal_conv1d_update", "causal_conv1d_varlen", "make_metadata"]

_TRITON = "staticfire.kernels.causal_conv1d.triton"
_VARLEN = Registry(
    "causal_conv1d_varlen",
    {"torch": _torch.causal_conv1d_varlen, "reference": _reference.causal_conv1d_varlen},
    {"triton": f"{_TRITON}:causal_conv1d_varlen"},
)
_UPDATE = Registry(
    "causal_conv1d_update",
    {"torch": _torch.causal_conv1d_update, "reference": _reference.causal_conv1d_update},
    {"triton": f"{_TRITON}:causal_conv1d_update"},
)


def causal_conv1d_varlen(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    cu_seqlens: Tensor,
    conv_state: Tensor,
    state_indices: Tensor,
    has_initial_state: Tensor,
    activation: Literal["silu"] | None,
    *,
    metadata: ConvMetadata | None = None,
    backend: Backend = "torch",
) -> Tensor:
    """Convolve packed sequences and leave their last K - 1 inputs in the pool.

    A sequence without tokens, or with a negative slot, reads and writes nothing; the outputs of the latter are 0.

    Args:
        x: [T, D], sequences one after the other.
        weight: [D, K], oldest tap first.
        bias: [D] or None.
        cu_seqlens: int[B + 1], first token of each sequence, then T.
        conv_state: [N, D, K - 1], oldest input first, any strides; changed in place.
        state_indices: int[B], slot of each sequence, no slot twice.
        has_initial_state: bool[B]; where False the history is zero and the slot's content is not read.
        activation: "silu" or None.
        metadata: What `make_metadata` gave for this step, to share it between layers.
        backend: Which implementation runs.

    Returns:
        [T, D] in the dtype of `x`.

    Raises:
        ValueError: `activation` or `backend` is unknown.
    """
    _check_activation(activation)
    return _VARLEN[backend](
        x, weight, bias, cu_seqlens, conv_state, state_indices, has_initial_state, activation, metadata
    )


def causal_conv1d_update(
    x: Tensor,
    conv_state: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    state_indices: Tensor,
    activation: Literal["silu"] | None,
    *,
    slots: Slots | None = None,
    backend: Backend = "torch",
) -> Tensor:
    """Convolve one new token of each sequence, and roll its state.

    Args:
        x: [B, D].
        conv_state: [N, D, K - 1], oldest input first, any strides; changed in place. Quickest when its memory is
            laid out [N, K - 1, D].
        weight: [D, K], oldest tap first.
        bias: [D] or None.
        state_indices: int[B], slot of each row, no slot twice; a negative row reads and writes nothing, output 0.
        activation: "silu" or None.
        slots: What `make_slots(state_indices)` gave for this step, to share it between layers.
        backend: Which implementation runs.

    Returns:
        [B, D] in the dtype of `x`.

    Raises:
        ValueError: `activation` or `backend` is unknown.
    """
    _check_activation(activation)
    return _UPDATE[backend](x, conv_state, weight, bias, state_indices, activation, slots)


def _check_activation(activation: str | None) -> None:
    if activation is not None and activation != "silu":
        raise ValueError(f"causal_conv1d: activation is 'silu' or None; got {activation!r}")
