"""Writes into the paged cache, one token at a time.

Slot s of token t names block s // block_size and offset s % block_size; plane 0 of a block holds keys, plane 1
values (vLLM `reshape_and_cache`, with its flash layout). A negative slot writes nothing. A cache of 8-bit floats gets
x / scale, taken in float32, limited to its range and rounded to nearest, ties to even (Micikevicius et al. 2022, "FP8
Formats for Deep Learning", the saturating conversion).
"""

from typing import Any

import torch
from torch import Tensor

from staticfire.kernels.dtypes import FP8


def _rounded(x: Tensor, scale: float, dtype: torch.dtype) -> Tensor:
    if dtype in FP8:
        largest = torch.finfo(dtype).max
        return (x.to(torch.float32) / scale).clamp(-largest, largest).to(dtype)
    return x.to(dtype)


def reshape_and_cache(
    key: Tensor,
    value: Tensor,
    kv_cache: Tensor,
    slot_mapping: Tensor,
    k_scale: float = 1.0,
    v_scale: float = 1.0,
    metadata: Any = None,  # noqa: ARG001 - derived from the other arguments, so nothing to read
) -> None:
    """See `staticfire.kernels.reshape_and_cache.reshape_and_cache`."""
    block_size = kv_cache.shape[2]
    for t, slot in enumerate(slot_mapping.tolist()):
        if slot >= 0:
            kv_cache[slot // block_size, 0, slot % block_size] = _rounded(key[t], k_scale, kv_cache.dtype)
            kv_cache[slot // block_size, 1, slot % block_size] = _rounded(value[t], v_scale, kv_cache.dtype)
