"""State copies, one after the other: state[dst[i]] = state[src[i]]."""

from torch import Tensor


def state_copy(state: Tensor, src: Tensor, dst: Tensor) -> None:
    """See `staticfire.kernels.state_copy.state_copy`."""
    for source, target in zip(src.tolist(), dst.tolist(), strict=True):
        if source >= 0 and target >= 0:
            state[target] = state[source].clone()
