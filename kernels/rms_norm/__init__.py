"""Root-mean-square normalisation: alone, fused with the residual addition before it, and of several parts."""

from torch import Tensor

from staticfire.kernels.dispatch import Backend, Registry
from staticfire.kernels.rms_norm import reference as _reference
from staticfire.kernels.rms_norm import torch as _torch

__all__ = ["fused_add_rms_norm", "rms_norm", "rms_norm_parts"]

_TRITON = "staticfire.kernels.rms_norm.triton"
_NORM = Registry(
    "rms_norm",
    {"torch": _torch.rms_norm, "reference": _reference.rms_norm},
    {"triton": f"{_TRITON}:rms_norm"},
)
_ADD_NORM = Registry(
    "fused_add_rms_norm",
    {"torch": _torch.fused_add_rms_norm, "reference": _reference.fused_add_rms_norm},
    {"triton": f"{_TRITON}:fused_add_rms_norm"},
)
_PARTS = Registry(
    "rms_norm_parts",
    {"torch": _torch.rms_norm_parts, "reference": _reference.rms_norm_parts},
    {"triton": f"{_TRITON}:rms_norm_parts"},
)


def rms_norm(x: Tensor, weight: Tensor, eps: float, *, backend: Backend = "torch") -> Tensor:
    """Return `weight * x / sqrt(mean(x^2) + eps)`, row by row.

    The quotient is rounded to the dtype of `x` before the weight multiplies it, as Hugging Face and vLLM do.

    Args:
        x: [T, H], any strides.
        weight: [H], same dtype as `x`.
        eps: Added to the mean square.
        backend: Which implementation runs.

    Returns:
        [T, H] in the dtype of `x`.

    Raises:
        ValueError: `backend` is unknown.
    """
    return _NORM[backend](x, weight, eps)


def fused_add_rms_norm(
    x: Tensor, residual: Tensor, weight: Tensor, eps: float, *, backend: Backend = "torch"
) -> tuple[Tensor, Tensor]:
    """Add `x` to the residual stream and normalise the sum.

    Args:
        x: [T, H].
        residual: [T, H], same dtype.
        weight: [H], same dtype.
        eps: Added to the mean square.
        backend: Which implementation runs.

    Returns:
        (rms_norm(x + residual), x + residual), both [T, H]. No input is changed.

    Raises:
        ValueError: `backend` is unknown.
    """
    return _ADD_NORM[backend](x, residual, weight, eps)


def rms_norm_parts(
    x: Tensor, weight: Tensor, eps: float, sizes: tuple[int, ...], *, backend: Backend = "torch"
) -> Tensor:
    """Normalise neighbouring columns apart: `rms_norm` of each part, in one go.

    Args:
        x: [T, H], parts side by side; all values finite.
        weight: [H], the weights of the parts side by side, same dtype.
        eps: Added to the mean square of each part.
        sizes: Columns of each part; they add up to H.
        backend: Which implementation runs.

    Returns:
        [T, H] in the dtype of `x`.

    Raises:
        ValueError: `backend` is unknown.
    """
    return _PARTS[backend](x, weight, eps, sizes)
