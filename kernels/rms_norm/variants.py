"""What is compiled of the norms: the hidden sizes of real hybrids, and the widths that Mamba normalises in parts."""

from staticfire.kernels.rms_norm.triton import warps
from staticfire.kernels.targets import Target
from staticfire.kernels.variant import FP32, Constant, Variant

_KERNEL = "staticfire.kernels.rms_norm.triton:_rms_norm"


def _variant(op: str, name: str, dtype: str, block: int, *, residual: bool = False, parts: bool = False) -> Variant:
    pointer, stride = f"*{dtype}:16", "i32:16"
    signature = {"x": pointer, "weight": pointer, "out": pointer, "x_row": stride, "hidden": stride}
    constants: dict[str, Constant] = {
        "x_column": 1,
        "weight_column": 1,
        "EPS": 1e-6,
        "WIDE": FP32,
        "BLOCK": block,
        "PARTS": parts,
    }
    if residual:
        signature |= {"residual": pointer, "total": pointer, "residual_row": stride}
        constants["residual_column"] = 1
    else:
        # Absent, their strides are passed as 0, which is a multiple of 16.
        signature |= {"residual_row": stride, "residual_column": stride}
        constants |= {"residual": None, "total": None}
    if parts:
        signature["first_column"] = "*i32:16"
    else:
        constants["first_column"] = None
    return Variant(op, name, _KERNEL, signature, constants, num_warps=warps(block))


def variants(target: Target) -> list[Variant]:  # noqa: ARG001 - the launch is the same on every device
    """List them; see `staticfire.kernels.variant`."""
    made = [
        _variant(op, f"{dtype}-h4096", dtype, 4096, residual=residual)
        for op, residual in (("rms_norm", False), ("fused_add_rms_norm", True))
        for dtype in ("bf16", "fp32")
    ]
    made.append(_variant("fused_add_rms_norm", "bf16-h8192", "bf16", 8192, residual=True))
    return [*made, _variant("rms_norm_parts", "bf16-p256", "bf16", 256, parts=True)]
