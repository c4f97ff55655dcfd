"""What attention costs: queries and outputs once, keys and values of each sequence once, products of visible pairs."""

from staticfire.kernels.variant import Cost, at_most, item_bytes


def paged_attention(
    *,
    sequences: int,
    queries: int,
    positions: int,
    heads: int,
    key_heads: int,
    head_size: int = 128,
    dtype: str = "bf16",
    cache_dtype: str | None = None,
) -> Cost:
    """Sequences of one shape.

    Args:
        sequences: B.
        queries: Of each sequence: 1 for a decode.
        positions: Of each sequence, the queries included.
        heads: Query heads.
        key_heads: Heads of the cache.
        head_size: d.
        dtype: Of queries and outputs.
        cache_dtype: Of the cache, `dtype` unless given.

    Returns:
        The cost: a visible pair of a query and a position takes 4 d for its products and 4 for the softmax, a head.
    """
    at_most("paged_attention", queries=queries, positions=positions)
    if heads % key_heads:
        raise ValueError(f"paged_attention: heads is a multiple of key_heads, which is {key_heads}; got {heads}")
    visible = queries * (positions - queries) + queries * (queries + 1) // 2
    rows = sequences * queries * heads * head_size * item_bytes(dtype)
    cache = 2 * sequences * positions * key_heads * head_size * item_bytes(cache_dtype or dtype)
    return Cost(rows + cache, rows, sequences * heads * visible * (4 * head_size + 4), dtype)
