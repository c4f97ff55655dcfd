"""State copies, one after the other.

Formula: state[dst[i]] = state[src[i]] for i = 0, 1, 2, ..., each seeing what the ones before it wrote: the order in
which a scheduler lists them. A negative slot on either side makes a copy void.
"""

from torch import Tensor


def state_copy(state: Tensor, src: Tensor, dst: Tensor) -> None:
    """See `staticfire.kernels.state_copy.state_copy`."""
    for source, target in zip(src.tolist(), dst.tolist(), strict=True):
        if source >= 0 and target >= 0:
            state[target] = state[source].clone()
