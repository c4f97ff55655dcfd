"""One step's next tokens."""

import math
from collections.abc import Sequence

import torch

from staticfire.engine.errors import EngineError
from staticfire.engine.sampler.draw import draw
from staticfire.engine.scheduler.output import ScheduledChunk


def next_tokens(logits: torch.Tensor, chunks: Sequence[ScheduledChunk]) -> list[int]:
    """Choose the token that follows each chunk.

    Forced tokens come before everything, temperature 0 takes the best (the first of equals), the rest is drawn.

    Args:
        logits: [chunks, vocabulary], after the last token of each.
        chunks: The chunks that sample, in the same order.

    Raises:
        EngineError: A logit is not finite: the forward pass went wrong, and no token would mean anything.
    """
    best, argmax = logits.max(dim=-1)
    if not math.isfinite(best.sum().item()):
        bad = [chunk.request_id for chunk, value in zip(chunks, best.tolist(), strict=True) if not math.isfinite(value)]
        raise EngineError(f"logits are not finite for request(s) {', '.join(bad)}")
    tokens: list[int] = argmax.tolist()
    for row, chunk in enumerate(chunks):
        params = chunk.sampling_params
        if params.forced_token_ids is not None:
            position = chunk.start + len(chunk.token_ids)
            tokens[row] = params.forced_token_ids[position - chunk.num_prompt_tokens]
        elif params.temperature > 0:
            position = chunk.start + len(chunk.token_ids)
            tokens[row] = draw(logits[row].double().numpy(), params, position)
    return tokens
