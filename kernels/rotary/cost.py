"""What the rotation costs."""

from staticfire.kernels.variant import Cost, item_bytes


def rotary_embedding(*, tokens: int, heads: int, key_heads: int, head_size: int, dtype: str = "bf16") -> Cost:
    """Three operations an element: two products and a sum; a row of float32 angles a token."""
    elements = tokens * (heads + key_heads) * head_size
    angles, item = tokens * (head_size * 4 + 8), item_bytes(dtype)
    return Cost(read=elements * item + angles, written=elements * item, operations=3 * elements)
