"""What the scan costs: inputs, gate and output once; the states once a sequence; exponentials bound long prompts."""

from staticfire.kernels.variant import Cost, at_most, item_bytes


def selective_scan_varlen(
    *, tokens: int, channels: int, states: int = 16, sequences: int = 1, dtype: str = "bf16", state_dtype: str = "fp32"
) -> Cost:
    """With D, gate, bias and softplus, as Mamba has them.

    Args:
        tokens: Of all sequences.
        channels: Of the layer.
        states: Of a channel.
        sequences: With tokens, all of them continued from a state.
        dtype: Of the activations.
        state_dtype: Of the states.

    Returns:
        The cost. A token and channel costs, for each of its states, an exponential and its argument, two products and
        a sum for the state, a product and a sum for the output; besides them 4 for the time step, 1 for its product
        with the input, 2 for D and 5 for the gate. A, D and bias are float32.
    """
    at_most("selective_scan_varlen", sequences=sequences, tokens=tokens)
    item = item_bytes(dtype)
    elements, state = tokens * channels, sequences * channels * states * item_bytes(state_dtype)
    read = (3 * elements + 2 * tokens * states) * item + state + channels * (states + 2) * 4
    return Cost(read, elements * item + state, elements * (7 * states + 12))


def selective_state_update(
    *, sequences: int, channels: int, states: int = 16, dtype: str = "bf16", state_dtype: str = "fp32"
) -> Cost:
    """As `selective_scan_varlen` with one token a sequence.

    Args:
        sequences: Rows of the batch.
        channels: Of the layer.
        states: Of a channel.
        dtype: Of the activations.
        state_dtype: Of the states.

    Returns:
        The cost.
    """
    return selective_scan_varlen(
        tokens=sequences,
        channels=channels,
        states=states,
        sequences=sequences,
        dtype=dtype,
        state_dtype=state_dtype,
    )
