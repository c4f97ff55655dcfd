"""Linear layer with int8 weights, as one product in the wide dtype.

A product in float16 would overflow at 65504 before its scale brings it down, and one in bfloat16 would round twice.
"""

from torch import Tensor
from torch.nn.functional import linear

from staticfire.kernels.dtypes import compute_dtype


def int8_linear(x: Tensor, w: Tensor, scale: Tensor, bias: Tensor | None = None) -> Tensor:
    """See `staticfire.kernels.int8_linear.int8_linear`."""
    wide = compute_dtype(x)
    out = linear(x.to(wide), w.to(wide)).mul_(scale)
    if bias is not None:
        out += bias
    return out.to(x.dtype)
