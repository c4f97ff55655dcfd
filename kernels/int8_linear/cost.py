"""What the int8 linear layer costs: tokens, weights and outputs once, one product."""

from staticfire.kernels.variant import Cost, item_bytes


def int8_linear(*, tokens: int, inputs: int, outputs: int, dtype: str = "bf16") -> Cost:
    """Without a bias.

    Args:
        tokens: T.
        inputs: Channels of a token.
        outputs: Channels of a result.
        dtype: Of tokens and results, and of the product.

    Returns:
        The cost; the scales take one product an output.
    """
    item = item_bytes(dtype)
    read = tokens * inputs * item + outputs * (inputs + 4)
    return Cost(read, tokens * outputs * item, 2 * tokens * inputs * outputs + tokens * outputs, dtype)
