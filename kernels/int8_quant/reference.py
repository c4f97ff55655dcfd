"""Int8 quantization, one output row at a time.

Formula (per output row): s = max|w| / 127 in float32; q = clamp(round(w / s), -127, 127), halves to even, so the
grid is symmetric and -128 stays unused. All-zero row: s = 1, q = 0.
"""

import torch
from torch import Tensor

from staticfire.kernels.dtypes import compute_dtype


def quantize_per_channel(w: Tensor) -> tuple[Tensor, Tensor]:
    """See `staticfire.kernels.int8_quant.quantize_per_channel`."""
    wide = compute_dtype(w)
    rows = w.reshape(-1, w.shape[-1])
    q = torch.empty(rows.shape, dtype=torch.int8, device=w.device)
    scale = torch.empty(rows.shape[0], dtype=torch.float32, device=w.device)
    for r in range(rows.shape[0]):
        row = rows[r].to(wide)
        step = (row.abs().max() / 127).to(torch.float32)
        scale[r] = step if step > 0 else 1.0
        q[r] = torch.clamp(torch.round(row / scale[r].to(wide)), -127, 127).to(torch.int8)
    return q.reshape(w.shape), scale.reshape(w.shape[:-1])
