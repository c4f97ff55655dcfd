"""SwiGLU gate, element by element.

Formula: out_i = silu(x_i) * x_{I+i}, silu(v) = v / (1 + exp(-v)) (Shazeer 2020, "GLU variants improve
transformer"). silu is rounded to the input's dtype before the product, as Hugging Face and vLLM do.
"""

import torch
from torch import Tensor

from staticfire.kernels.dtypes import compute_dtype


def silu_and_mul(x: Tensor) -> Tensor:
    """See `staticfire.kernels.silu_and_mul.silu_and_mul`."""
    half = x.shape[-1] // 2
    gate = x[..., :half].to(compute_dtype(x))
    silu = (gate / (1 + torch.exp(-gate))).to(x.dtype)
    return silu * x[..., half:]
