"""What is compiled of the routing: the expert counts of Jamba, Granite 4 and Qwen3-Next."""

from staticfire.kernels.targets import Target
from staticfire.kernels.variant import FP32, Constant, Variant

_KERNEL = "staticfire.kernels.topk_softmax.triton:_topk_softmax"


def _variant(dtype: str, experts: int, top_k: int, *, renormalize: bool) -> Variant:
    signature = {"logits": f"*{dtype}:16", "weights": "*fp32:16", "ids": "*i64:16"}
    signature |= {"row_stride": "i32:16", "experts": "i32:16"}
    constants: dict[str, Constant] = {"column_stride": 1, "TOP_K": top_k, "RENORMALIZE": renormalize, "WIDE": FP32}
    constants |= {"EXPERTS": experts, "SLOTS": 1 << (top_k - 1).bit_length()}
    return Variant("topk_softmax", f"{dtype}-e{experts}-k{top_k}", _KERNEL, signature, constants)


def variants(target: Target) -> list[Variant]:  # noqa: ARG001 - the launch is the same on every device
    """List them; see `staticfire.kernels.variant`."""
    return [
        _variant("bf16", 16, 2, renormalize=False),
        _variant("bf16", 64, 6, renormalize=True),
        _variant("bf16", 512, 10, renormalize=True),
        _variant("fp32", 16, 2, renormalize=False),
    ]
