"""Expert routing over all tokens at once; a stable sort keeps the lower id first among equals."""

import torch
from torch import Tensor

from staticfire.kernels.dtypes import compute_dtype


def topk_softmax(router_logits: Tensor, top_k: int, renormalize: bool) -> tuple[Tensor, Tensor]:
    """See `staticfire.kernels.topk_softmax.topk_softmax`."""
    logits, order = torch.sort(router_logits, dim=-1, descending=True, stable=True)
    wide = compute_dtype(logits)
    if renormalize:
        return torch.softmax(logits[:, :top_k], -1, dtype=wide), order[:, :top_k]
    return torch.softmax(logits, -1, dtype=wide)[:, :top_k], order[:, :top_k]
