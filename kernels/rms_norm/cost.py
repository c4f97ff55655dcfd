"""What the norms cost: they move their rows once."""

from staticfire.kernels.variant import Cost, item_bytes


def rms_norm(*, tokens: int, hidden: int, dtype: str = "bf16") -> Cost:
    """Square and add, scale by the root, scale by the weight."""
    row, item = tokens * hidden, item_bytes(dtype)
    return Cost(read=(row + hidden) * item, written=row * item, operations=4 * row)


def fused_add_rms_norm(*, tokens: int, hidden: int, dtype: str = "bf16") -> Cost:
    """One more operand, one more output, one more addition."""
    row, item = tokens * hidden, item_bytes(dtype)
    return Cost(read=(2 * row + hidden) * item, written=2 * row * item, operations=5 * row)


def rms_norm_parts(*, tokens: int, hidden: int, dtype: str = "bf16") -> Cost:
    """As `rms_norm`; where the parts begin is negligible."""
    return rms_norm(tokens=tokens, hidden=hidden, dtype=dtype)
