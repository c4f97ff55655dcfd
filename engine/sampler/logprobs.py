"""Log-probabilities of tokens, as the model has them (before temperature, top-k and top-p)."""

from collections.abc import Sequence

import torch

from staticfire.engine.scheduler.output import TokenLogprobs


def token_logprobs(logits: torch.Tensor, tokens: Sequence[int], tops: Sequence[int]) -> list[TokenLogprobs]:
    """Describe `tokens[i]` under row i of `logits`.

    Args:
        logits: [n, vocabulary]; half types are widened to float32, float64 stays.
        tokens: The token that followed each row.
        tops: How many of the best tokens to list for each row, best first.
    """
    if not tokens:
        return []
    wide = torch.promote_types(logits.dtype, torch.float32)
    logprobs = torch.log_softmax(logits.to(wide), dim=-1)
    chosen = logprobs.gather(1, torch.tensor(tokens)[:, None])[:, 0].tolist()
    argmax = logits.argmax(dim=-1).tolist()
    most = min(max(tops), logits.shape[1])
    values, ids = (part.tolist() for part in logprobs.topk(most, dim=-1))
    return [
        TokenLogprobs(token, logprob, best, tuple(zip(row_ids[:top], row_values[:top], strict=True)))
        for token, logprob, best, row_ids, row_values, top in zip(
            tokens, chosen, argmax, ids, values, tops, strict=True
        )
    ]
