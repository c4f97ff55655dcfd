"""The one rule for the dtype that an op computes in, and for 8-bit floats that a cache holds."""

import math

import torch
from torch import Tensor

FP8 = frozenset({torch.float8_e4m3fn, torch.float8_e5m2})
"""8-bit floats that a cache may hold, each value times a scale."""


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


def cache_scales(op: str, kv_cache: Tensor, k_scale: float, v_scale: float) -> tuple[float, float]:
    """Check the scales of a cache, and round them to float32, in which kernels get them.

    Args:
        op: For the error message.
        kv_cache: The cache.
        k_scale: What a stored key is multiplied by.
        v_scale: What a stored value is multiplied by.

    Returns:
        Both.

    Raises:
        ValueError: A scale is not positive and finite, or is not 1 though the cache holds no 8-bit floats.
    """
    if kv_cache.dtype not in FP8:
        if (k_scale, v_scale) != (1.0, 1.0):
            raise ValueError(
                f"{op}: k_scale and v_scale belong to a cache of 8-bit floats; got {k_scale} and {v_scale} with "
                f"{kv_cache.dtype}"
            )
        return 1.0, 1.0
    rounded = torch.tensor([k_scale, v_scale], dtype=torch.float32).tolist()
    if not all(math.isfinite(scale) and scale > 0 for scale in rounded):
        raise ValueError(f"{op}: k_scale and v_scale are positive and finite; got {k_scale} and {v_scale}")
    return rounded[0], rounded[1]
