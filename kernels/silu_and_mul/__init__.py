"""The gated activation between the two projections of a feed-forward block."""

from torch import Tensor

from staticfire.kernels.dispatch import Backend, Registry
from staticfire.kernels.silu_and_mul import reference as _reference
from staticfire.kernels.silu_and_mul import torch as _torch

__all__ = ["silu_and_mul"]

_IMPL = Registry(
    "silu_and_mul",
    {"torch": _torch.silu_and_mul, "reference": _reference.silu_and_mul},
    {"triton": "staticfire.kernels.silu_and_mul.triton:silu_and_mul"},
)


def silu_and_mul(x: Tensor, *, backend: Backend = "torch") -> Tensor:
    """Return `silu(gate) * up` for `x = cat(gate, up)`.

    Args:
        x: [..., 2I], gate first.
        backend: Which implementation runs.

    Returns:
        [..., I] in the dtype of `x`.

    Raises:
        ValueError: The last dimension is odd, or `backend` is unknown.
    """
    if x.shape[-1] % 2:
        raise ValueError(f"silu_and_mul: the last dimension of x holds gate and up, so it is even; got {x.shape[-1]}")
    return _IMPL[backend](x)
