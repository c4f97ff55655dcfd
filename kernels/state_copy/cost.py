"""What copies of states cost: they move, and compute nothing."""

from staticfire.kernels.variant import Cost, item_bytes


def state_copy(*, copies: int, elements: int, dtype: str = "fp32") -> Cost:
    """Each state once in, once out, and its two slots.

    Args:
        copies: Pairs of slots.
        elements: Of one state.
        dtype: Of the states.

    Returns:
        The cost.
    """
    moved = copies * elements * item_bytes(dtype)
    return Cost(read=moved + 16 * copies, written=moved, operations=0)
