"""What quantization costs."""

from staticfire.kernels.variant import Cost, item_bytes


def quantize_per_channel(*, rows: int, width: int, dtype: str = "bf16") -> Cost:
    """The weights once in, as int8 once out; magnitude, largest, divide, round and two limits an element."""
    elements = rows * width
    return Cost(elements * item_bytes(dtype), elements + 4 * rows, 6 * elements)
