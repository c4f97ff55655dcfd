"""What is compiled of the quantization."""

from staticfire.kernels.int8_quant.triton import BLOCK
from staticfire.kernels.targets import Target
from staticfire.kernels.variant import FP32, Variant

_KERNEL = "staticfire.kernels.int8_quant.triton:_quantize"


def variants(target: Target) -> list[Variant]:  # noqa: ARG001 - the launch is the same on every device
    """List them; see `staticfire.kernels.variant`."""
    return [
        Variant(
            "quantize_per_channel",
            dtype,
            _KERNEL,
            {"w": f"*{dtype}:16", "q": "*i8:16", "scale": "*fp32:16", "width": "i32:16"},
            {"WIDE": FP32, "BIG": 1.5 * 2.0**23, "BLOCK": BLOCK},
        )
        for dtype in ("bf16", "fp32")
    ]
