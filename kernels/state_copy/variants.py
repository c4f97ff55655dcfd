"""What is compiled of the state copies: pools of Mamba-1 as the engine lays them out, channels last in memory."""

from staticfire.kernels.state_copy.triton import BLOCK
from staticfire.kernels.targets import Target
from staticfire.kernels.variant import Variant

_KERNEL = "staticfire.kernels.state_copy.triton:_state_copy"
_ROUND = ("slot_stride", "stride0", "stride2", "elements", "plane")


def _variant(name: str, dtype: str, width: str) -> Variant:
    signature = {"state": f"*{dtype}:16", "src": "*i64:16", "dst": "*i64:16", "copies": "i32", "width": width}
    signature |= dict.fromkeys(_ROUND, "i32:16")
    return Variant("state_copy", name, _KERNEL, signature, {"stride1": 1, "BLOCK": BLOCK})


def variants(target: Target) -> list[Variant]:  # noqa: ARG001 - the launch is the same on every device
    """List them; see `staticfire.kernels.variant`."""
    return [
        _variant("fp32-n16", "fp32", "i32:16"),
        _variant("bf16-n16", "bf16", "i32:16"),
        _variant("bf16-n3", "bf16", "i32"),
    ]
