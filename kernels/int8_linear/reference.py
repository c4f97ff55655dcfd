"""Linear layer with int8 weights, one token at a time.

Formula: y_r = s_r * sum_c Q_rc x_c + b_r (weight-only int8, one scale per output channel; Dettmers et al. 2022,
"LLM.int8()", section 2, with the activations left as they are). In float32 (float64 for float64), rounded once.
"""

import torch
from torch import Tensor

from staticfire.kernels.dtypes import compute_dtype


def int8_linear(x: Tensor, w: Tensor, scale: Tensor, bias: Tensor | None = None) -> Tensor:
    """See `staticfire.kernels.int8_linear.int8_linear`."""
    wide = compute_dtype(x)
    out = torch.empty(x.shape[0], w.shape[0], dtype=x.dtype, device=x.device)
    for t in range(x.shape[0]):
        total = (w.to(wide) * x[t].to(wide)).sum(-1) * scale.to(wide)
        out[t] = (total if bias is None else total + bias.to(wide)).to(x.dtype)
    return out
