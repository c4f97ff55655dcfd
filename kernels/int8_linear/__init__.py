"""A linear layer whose weights are int8 with one scale per output channel."""

from torch import Tensor, int8

from staticfire.kernels.dispatch import Backend, Registry
from staticfire.kernels.int8_linear import reference as _reference
from staticfire.kernels.int8_linear import torch as _torch

__all__ = ["int8_linear"]

_IMPL = Registry(
    "int8_linear",
    {"torch": _torch.int8_linear, "reference": _reference.int8_linear},
    {"triton": "staticfire.kernels.int8_linear.triton:int8_linear"},
)


def int8_linear(
    x: Tensor, w: Tensor, scale: Tensor, bias: Tensor | None = None, *, backend: Backend = "torch"
) -> Tensor:
    """Multiply by int8 weights: products are summed on the integers, and each channel's sum is scaled once.

    Args:
        x: [T, in], any strides.
        w: int8[out, in], any strides; what `quantize_per_channel` gives.
        scale: float32[out].
        bias: [out], or None.
        backend: Which implementation runs.

    Returns:
        [T, out] in the dtype of `x`: (x w^T) * scale + bias, rounded once.

    Raises:
        ValueError: The weights are not int8, the shapes do not fit, or `backend` is unknown.
    """
    if w.dtype is not int8:
        raise ValueError(f"int8_linear: weights are int8; got {w.dtype}")
    outputs, inputs = w.shape
    fits = x.dim() == 2 and x.shape[1] == inputs and scale.shape == (outputs,)
    if not fits or (bias is not None and bias.shape != (outputs,)):
        raise ValueError(
            f"int8_linear: x [T, in], w [out, in], scale [out] and bias [out] or None; got {list(x.shape)}, "
            f"{list(w.shape)}, {list(scale.shape)} and {None if bias is None else list(bias.shape)}"
        )
    return _IMPL[backend](x, w, scale, bias)
