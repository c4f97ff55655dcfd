"""What the gated activation costs."""

from staticfire.kernels.variant import Cost, item_bytes


def silu_and_mul(*, tokens: int, width: int, dtype: str = "bf16") -> Cost:
    """Read gate and up, write one; negate, exponential, add, divide, multiply.

    Args:
        tokens: Rows.
        width: Of the output, half of the input's.
        dtype: Of both.

    Returns:
        The cost.
    """
    out, item = tokens * width, item_bytes(dtype)
    return Cost(read=2 * out * item, written=out * item, operations=5 * out)
