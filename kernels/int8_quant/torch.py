"""Int8 quantization of all rows at once."""

import torch
from torch import Tensor

from staticfire.kernels.dtypes import compute_dtype


def quantize_per_channel(w: Tensor) -> tuple[Tensor, Tensor]:
    """See `staticfire.kernels.int8_quant.quantize_per_channel`."""
    wide = w.to(compute_dtype(w))
    scale = (wide.abs().amax(-1) / 127).to(torch.float32)
    scale = torch.where(scale > 0, scale, torch.ones_like(scale))
    # torch.round rounds halves to even.
    q = torch.round(wide / scale.to(wide.dtype).unsqueeze(-1)).clamp_(-127, 127).to(torch.int8)
    return q, scale
