"""What a weight quantization makes of the weights, written from its definition alone.

The engine has its own quantizer and its own kernels. This one shares no line with them, so that a wrong axis, a lost
scale or a wrong rounding there cannot be wrong here too.
"""

from collections.abc import Callable

import torch
from torch import Tensor

INT8_MAX = 127


def dequantized_int8(weight: Tensor) -> Tensor:
    """W' = q * s of symmetric int8 with one scale an output channel.

    s = max |row| / 127, or 1 for a row of zeros; q = round(W / s), half to even, within [-127, 127].

    Args:
        weight: [..., out, in]; any floating dtype.

    Returns:
        float32 [..., out, in].
    """
    rows = weight.detach().to(torch.float32)
    largest = rows.abs().amax(dim=-1, keepdim=True)
    scale = torch.where(largest > 0, largest / INT8_MAX, torch.ones_like(largest))
    steps = torch.round(rows / scale)
    return steps.clamp(-INT8_MAX, INT8_MAX) * scale


EXPERT_QUANTIZERS: dict[str, Callable[[Tensor], Tensor]] = {
    "experts_int8": dequantized_int8,
}
"""Quantization method -> what it makes of one expert tensor, in float32. A new method is one entry."""
