"""What the convolution costs: activations in and out once, and a few inputs of history."""

from staticfire.kernels.variant import Cost, at_most, item_bytes


def causal_conv1d_varlen(
    *, tokens: int, channels: int, width: int = 4, sequences: int = 1, dtype: str = "bf16", state_dtype: str = "bf16"
) -> Cost:
    """Every activation once in and once out, and the state of every sequence.

    Args:
        tokens: Of all sequences.
        channels: Of the layer.
        width: Taps.
        sequences: With tokens, all of them continued from a state.
        dtype: Of the activations and the weight.
        state_dtype: Of the states.

    Returns:
        The cost: a product and a sum a tap, the bias, and four operations of the gate.
    """
    at_most("causal_conv1d_varlen", sequences=sequences, tokens=tokens)
    moved = tokens * channels * item_bytes(dtype)
    state = sequences * channels * (width - 1) * item_bytes(state_dtype)
    weights = channels * (width + 1) * item_bytes(dtype)
    return Cost(moved + state + weights, moved + state, tokens * channels * (2 * width + 5))


def causal_conv1d_update(
    *, sequences: int, channels: int, width: int = 4, dtype: str = "bf16", state_dtype: str = "bf16"
) -> Cost:
    """As `causal_conv1d_varlen` with one token a sequence.

    Args:
        sequences: Rows of the batch.
        channels: Of the layer.
        width: Taps.
        dtype: Of the activations and the weight.
        state_dtype: Of the states.

    Returns:
        The cost.
    """
    return causal_conv1d_varlen(
        tokens=sequences, channels=channels, width=width, sequences=sequences, dtype=dtype, state_dtype=state_dtype
    )
