"""What routing costs."""

from staticfire.kernels.variant import Cost, at_most, item_bytes


def topk_softmax(*, tokens: int, experts: int, top_k: int, dtype: str = "bf16") -> Cost:
    """The logits once in, a float32 weight and an int64 expert a choice out.

    Operations: the largest, subtract, exponential, sum, divide; and two comparisons of all experts a choice.
    """
    at_most("topk_softmax", top_k=top_k, experts=experts)
    logits = tokens * experts
    return Cost(logits * item_bytes(dtype), tokens * top_k * (4 + 8), logits * (5 + 2 * top_k))
