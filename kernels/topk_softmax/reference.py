"""Expert routing, one token at a time.

Formula: p = softmax(logits) over the experts; take the k largest p; if renormalised, divide them by their sum
(Shazeer et al. 2017; Jamba keeps the raw probabilities). Equal logits: the lower expert id first.
"""

import torch
from torch import Tensor

from staticfire.kernels.dtypes import compute_dtype


def topk_softmax(router_logits: Tensor, top_k: int, renormalize: bool) -> tuple[Tensor, Tensor]:
    """See `staticfire.kernels.topk_softmax.topk_softmax`."""
    tokens, experts = router_logits.shape
    wide = compute_dtype(router_logits)
    weights = torch.empty(tokens, top_k, dtype=wide, device=router_logits.device)
    ids = torch.empty(tokens, top_k, dtype=torch.int64, device=router_logits.device)
    for t in range(tokens):
        row = router_logits[t].to(wide)
        exps = torch.exp(row - row.max())
        probabilities = exps / exps.sum()
        values = row.tolist()
        order = sorted(range(experts), key=lambda e: (-values[e], e))[:top_k]
        chosen = probabilities[order]
        weights[t] = chosen / chosen.sum() if renormalize else chosen
        ids[t] = torch.tensor(order)
    return weights, ids
