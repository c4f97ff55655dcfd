"""The one rule for the dtype that an op computes in."""

import torch
from torch import Tensor


def compute_dtype(*tensors: Tensor | None) -> torch.dtype:
    """Return the dtype for arithmetic inside an op.

    Args:
        tensors: The floating-point operands that decide; None is passed over.

    Returns:
        float64 if any of them is float64, else float32: half types accumulate in float32, and float64 never
        meets a float32 step.
    """
    for tensor in tensors:
        if tensor is not None and tensor.dtype is torch.float64:
            return torch.float64
    return torch.float32
