"""What a write into the cache costs: it moves, and computes nothing."""

from staticfire.kernels.variant import Cost, item_bytes


def reshape_and_cache(
    *, tokens: int, key_heads: int, head_size: int, dtype: str = "bf16", cache_dtype: str | None = None
) -> Cost:
    """Keys and values once in, once out, and a slot a token.

    Args:
        tokens: T.
        key_heads: Hk.
        head_size: d.
        dtype: Of keys and values.
        cache_dtype: Of the cache; by default the same.

    Returns:
        The cost.
    """
    elements = 2 * tokens * key_heads * head_size
    read = elements * item_bytes(dtype) + 8 * tokens
    return Cost(read=read, written=elements * item_bytes(cache_dtype or dtype), operations=0)
