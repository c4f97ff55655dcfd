"""What experts cost: tokens once, the weights of every expert that is chosen once, the chosen products."""

from staticfire.kernels.variant import Cost, at_most, item_bytes


def fused_moe(
    *,
    tokens: int,
    hidden: int,
    inner: int,
    experts: int,
    top_k: int = 2,
    dtype: str = "bf16",
    weight_dtype: str | None = None,
) -> Cost:
    """Tokens whose choices are spread over as many experts as they can be.

    Args:
        tokens: T.
        hidden: H.
        inner: I, channels between the projections of an expert.
        experts: E.
        top_k: Experts of a token.
        dtype: Of tokens and outputs, and of the products.
        weight_dtype: Of the weights, `dtype` unless given; int8 has a float32 scale a channel.

    Returns:
        The cost: a pair of a token and an expert takes 6 H I for its products and 6 I for the gate, and 2 H for its
        part of the mean.
    """
    at_most("fused_moe", top_k=top_k, experts=experts)
    weights, pairs = weight_dtype or dtype, tokens * top_k
    chosen, row = min(experts, pairs), tokens * hidden * item_bytes(dtype)
    scales = (2 * inner + hidden) * 4 if weights == "int8" else 0
    read = row + chosen * (3 * hidden * inner * item_bytes(weights) + scales) + pairs * (4 + 8)
    return Cost(read, row, pairs * (6 * hidden * inner + 6 * inner + 2 * hidden), dtype)
