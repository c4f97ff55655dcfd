"""Symmetric int8 quantization of weights, one scale per output channel."""

from torch import Tensor

from staticfire.kernels.dispatch import Backend, Registry
from staticfire.kernels.int8_quant import reference as _reference
from staticfire.kernels.int8_quant import torch as _torch

__all__ = ["quantize_per_channel"]

_IMPL = Registry(
    "quantize_per_channel",
    {"torch": _torch.quantize_per_channel, "reference": _reference.quantize_per_channel},
    {"triton": "staticfire.kernels.int8_quant.triton:quantize_per_channel"},
)


def quantize_per_channel(w: Tensor, *, backend: Backend = "torch") -> tuple[Tensor, Tensor]:
    """Quantize each output row of a weight by its largest magnitude.

    Args:
        w: [..., out, in], float32, float64 or a half type.
        backend: Which implementation runs.

    Returns:
        (q int8[..., out, in] in [-127, 127], scale float32[..., out]) with w ~ q * scale; |w - q * scale| is at
        most half a scale, but for rows so small that float32 cannot hold their scale precisely (below 1e-36).
        A row whose scale would be 0 (all zeros) has scale 1.

    Raises:
        ValueError: A weight is NaN or infinite, or `backend` is unknown.
    """
    if not bool(w.isfinite().all()):
        where = tuple(int(i) for i in (~w.isfinite()).nonzero()[0])
        raise ValueError(f"quantize_per_channel: weights are finite; got {float(w[where])} at {list(where)}")
    return _IMPL[backend](w)
