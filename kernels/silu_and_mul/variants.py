"""What is compiled of the gated activation."""

from staticfire.kernels.silu_and_mul.triton import BLOCK
from staticfire.kernels.targets import Target
from staticfire.kernels.variant import FP32, Variant

_KERNEL = "staticfire.kernels.silu_and_mul.triton:_silu_and_mul"


def variants(target: Target) -> list[Variant]:  # noqa: ARG001 - the launch is the same on every device
    """List them; see `staticfire.kernels.variant`."""
    return [
        Variant(
            "silu_and_mul",
            dtype,
            _KERNEL,
            {"x": f"*{dtype}:16", "out": f"*{dtype}:16", "x_row": "i32:16", "width": "i32:16"},
            {"x_column": 1, "WIDE": FP32, "BLOCK": BLOCK},
        )
        for dtype in ("bf16", "fp32")
    ]
