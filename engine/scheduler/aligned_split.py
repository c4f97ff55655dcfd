"""Where a prefill chunk may end when recurrent states are kept at block boundaries. Pure; imports no torch.

A state exists only at the end of a chunk. So that the useful ones exist, a chunk never runs past

    the next boundary, if it starts inside a block     the state there would be lost, and the slot with it
    (num_tokens - 1) // b * b                          where the same tokens, sent again, can start
    num_tokens // b * b                                where a longer request with this prefix can start
    the same two for the prompt alone                  for a replay after preemption
    the junction                                       where attention had a hit and no state was kept

and otherwise ends at a boundary. A chunk that cannot reach the next boundary is put off to a step with more budget,
unless no step ever has enough: then it goes on inside the block, on a private state that nobody can find.
"""


def aligned_length(
    *,
    start: int,
    proposed: int,
    num_prompt_tokens: int,
    num_tokens: int,
    block_size: int,
    max_chunk: int,
    junction: int,
) -> int:
    """Cut a proposed chunk.

    Args:
        start: Tokens already computed.
        proposed: Tokens that budget and limits allow in this step, at least 1; `start + proposed <= num_tokens`.
        num_prompt_tokens: Length of the prompt.
        num_tokens: Known tokens; more than the prompt when a preempted request replays its output.
        block_size: Tokens between two boundaries, b.
        max_chunk: The most tokens any step can give one request.
        junction: A boundary to stop at once, 0 for none.

    Returns:
        Tokens to compute, 0 if the request has to wait for a step with more budget.
    """
    if start >= max(num_prompt_tokens, num_tokens - 1):
        return proposed
    end = start + proposed
    if end < num_tokens:
        floor = end // block_size * block_size
        if floor > start:
            end = floor
        elif block_size <= max_chunk:
            return 0
    stops = (
        (start // block_size + 1) * block_size if start % block_size else 0,
        (num_tokens - 1) // block_size * block_size,
        num_tokens // block_size * block_size,
        (num_prompt_tokens - 1) // block_size * block_size,
        num_prompt_tokens // block_size * block_size,
        junction,
    )
    return min((stop for stop in stops if start < stop < end), default=end) - start
