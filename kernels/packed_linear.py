"""Matrix products over weights that oneDNN has laid out for itself: for several float32 rows on a CPU the quickest.

Measured on one thread of an AMD EPYC (AVX-512), as picoseconds a weight of [in, out], against MKL's product:

    rows        1    2    4    8    16    64    256
    MKL        60   93  146  210   360  1290   5000
    oneDNN     50   50   52   82   140   520   2240

and one call takes 9 µs more in a loop that does nothing else, and 25 µs between the layers of a model, whose code has
to be fetched again. On processors where MKL is as quick as oneDNN the two are level.
"""

from typing import Any, Final

import torch
from torch import Tensor

CALL_NS: Final = 9_000
"""What a call takes more than `torch.mm`: measured on weights of 64 x 64."""

CALL_IN_MODEL_NS: Final = 25_000
"""The same between the layers of a model: at 64 rows weights of 64 x 256 take 45 µs against 28, and of 64 x 512 as long
as with MKL. The experts' model of cost has this in its own constants."""

SAVED_NS: Final = 0.012
"""What a weight saves for every row but the first: from the table above, 16 rows and more."""

ALWAYS: Final = 1 << 19
"""Weights from which on the packed product is not slower for one row either, so that the plain copy can go."""

ROWS_HINT: Final = 64
"""For which oneDNN chooses the layout; measured, those for 16, 64 and 256 rows are equally quick from 1 to 256 rows."""


def is_worthwhile(weights: int, rows: int) -> bool:
    """Whether the packed product is the quicker one.

    Args:
        weights: Elements of the matrix.
        rows: Rows of the other operand.
    """
    return weights >= ALWAYS or weights * (rows - 1) * SAVED_NS > CALL_IN_MODEL_NS


def can_pack(weight: Tensor) -> bool:
    """Whether this matrix can be packed here, and is large enough for 64 rows or fewer to gain by it."""
    return (
        weight.dtype is torch.float32
        and weight.device.type == "cpu"
        and is_worthwhile(weight.numel(), ROWS_HINT)
        and torch.backends.mkldnn.is_available()
        and bool(torch.backends.mkldnn.enabled)
        and hasattr(torch.ops.mkldnn, "_linear_pointwise")
    )


class PackedLinear:
    """y = x W^T + b with W as oneDNN keeps it. Each row of y has the same bits whatever rows stand beside it."""

    __slots__ = ("_packed", "size")

    def __init__(self, weight: Tensor) -> None:
        """Copy `weight` [out, in], for which `can_pack` holds."""
        ops: Any = torch.ops.mkldnn
        self._packed = ops._reorder_linear_weight(weight.detach().contiguous(), ROWS_HINT)  # noqa: SLF001 - no public name
        self.size = weight.numel()

    def __call__(self, x: Tensor, bias: Tensor | None = None) -> Tensor:
        """[n, in] -> [n, out]."""
        ops: Any = torch.ops.mkldnn
        made: Tensor = ops._linear_pointwise(x, self._packed, bias, "none", [], "")  # noqa: SLF001 - the same
        return made

    def dense(self) -> Tensor:
        """The weight [out, in] as it was, to the bit."""
        dense: Tensor = self._packed.to_dense()
        return dense
