"""What is compiled of the rotation: heads of 64, 128 and 256 with all their columns, contiguous as projections are."""

from staticfire.kernels.rotary.triton import HEADS
from staticfire.kernels.targets import Target
from staticfire.kernels.variant import FP32, Constant, Variant

_KERNEL = "staticfire.kernels.rotary.triton:_rotary"


def _variant(dtype: str, size: int) -> Variant:
    signature = {"x": f"*{dtype}:16", "out": f"*{dtype}:16", "positions": "*i64:16", "cos_sin": "*fp32:16"}
    signature |= {"x_token": "i32:16", "x_head": "i32:16", "angle_row": "i32:16", "heads": "i32:16", "half": "i32:16"}
    constants: dict[str, Constant] = {"x_column": 1, "angle_column": 1, "WIDE": FP32, "HEADS": HEADS, "HALF": size // 2}
    return Variant("rotary_embedding", f"{dtype}-d{size}", _KERNEL, signature, constants)


def variants(target: Target) -> list[Variant]:  # noqa: ARG001 - the launch is the same on every device
    """List them; see `staticfire.kernels.variant`."""
    return [_variant("bf16", 64), _variant("bf16", 128), _variant("bf16", 256), _variant("fp32", 128)]
