"""What is compiled of the convolution: channels last in memory, as the engine keeps its states, for 2 to 4 taps."""

from staticfire.kernels.causal_conv1d.triton import CHANNELS, STEP_CHANNELS, TOKENS, warps
from staticfire.kernels.targets import Target
from staticfire.kernels.variant import FP32, Constant, Variant, integers, pointers

_MODULE = "staticfire.kernels.causal_conv1d.triton"
_SHARED = {
    **integers("state_slot", "state_tap", "channels"),
    **pointers("i32", "state_indices"),
    "weight_channel": "i32",
}
_ONES: dict[str, Constant] = {
    "x_channel": 1,
    "state_channel": 1,
    "bias_channel": 1,
    "weight_tap": 1,
    "SILU": True,
    "WIDE": FP32,
}
_TENSORS = ("x", "weight", "bias", "state", "out")


def _varlen(dtype: str, width: int) -> Variant:
    return Variant(
        "causal_conv1d_varlen",
        f"{dtype}-w{width}",
        f"{_MODULE}:_causal_conv1d_varlen",
        {
            **pointers(dtype, *_TENSORS),
            **pointers("i32", "cu_seqlens"),
            **pointers("i1", "has_initial_state"),
            **_SHARED,
            **integers("x_token"),
            "sequences": "i32",
        },
        {**_ONES, "HISTORY": width - 1, "TOKENS": TOKENS, "CHANNELS": CHANNELS, "TAPS": 1 << (width - 2).bit_length()},
        num_warps=warps(TOKENS, CHANNELS),
    )


def _update(dtype: str, width: int) -> Variant:
    return Variant(
        "causal_conv1d_update",
        f"{dtype}-w{width}",
        f"{_MODULE}:_causal_conv1d_update",
        {**pointers(dtype, *_TENSORS), **_SHARED, **integers("x_row")},
        {**_ONES, "HISTORY": width - 1, "CHANNELS": STEP_CHANNELS},
        num_warps=STEP_CHANNELS // 128,
    )


def variants(target: Target) -> list[Variant]:  # noqa: ARG001 - the launch is the same on every device
    """List them; see `staticfire.kernels.variant`."""
    shapes = [("bf16", 2), ("bf16", 3), ("bf16", 4), ("fp32", 4)]
    return [make(dtype, width) for make in (_varlen, _update) for dtype, width in shapes]
