"""Copies of whole states between pool slots."""

from torch import Tensor

from staticfire.kernels.dispatch import Backend, Registry
from staticfire.kernels.state_copy import reference as _reference
from staticfire.kernels.state_copy import torch as _torch

__all__ = ["state_copy"]

_IMPL = Registry(
    "state_copy",
    {"torch": _torch.state_copy, "reference": _reference.state_copy},
    {"triton": "staticfire.kernels.state_copy.triton:state_copy"},
)


def state_copy(state: Tensor, src: Tensor, dst: Tensor, *, backend: Backend = "torch") -> None:
    """Copy `state[src[i]]` to `state[dst[i]]` for each i, in order, in place.

    A later copy sees what an earlier one wrote. A copy whose source or destination is negative is passed over.

    Args:
        state: [N, ...], any strides.
        src: int[n].
        dst: int[n].
        backend: Which implementation runs.

    Raises:
        ValueError: `src` and `dst` differ in length, or `backend` is unknown.
    """
    if src.shape != dst.shape:
        raise ValueError(f"state_copy: src and dst have one shape; got {tuple(src.shape)} and {tuple(dst.shape)}")
    _IMPL[backend](state, src, dst)
