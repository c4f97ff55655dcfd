"""What is compiled of the scan: activations in bfloat16 beside states in float32, for states of 16 to 256."""

from staticfire.kernels.selective_scan.tiles import choose
from staticfire.kernels.targets import Target
from staticfire.kernels.variant import FP32, Constant, Variant, integers, pointers

_MODULE = "staticfire.kernels.selective_scan.triton"
_TOKENS = ("u", "delta", "B", "C", "z", "out")
_LAST = ("u_channel", "delta_channel", "B_state", "C_state", "D_channel", "z_channel", "bias_channel")
_CHANNELS_LAST = ("A_channel", "state_channel"), ("A_state", "state_state")
_STATES_LAST = ("A_state", "state_state"), ("A_channel", "state_channel")


def _variant(op: str, dtype: str, states: int, *, states_last: bool = False) -> Variant:
    tile = choose(8192, states, 4, step=op == "selective_state_update")
    ones, strides = _STATES_LAST if states_last else _CHANNELS_LAST
    signature = {
        **pointers(dtype, *_TOKENS),
        **pointers("fp32", "A", "D", "delta_bias", "state"),
        **pointers("i32", "state_indices"),
        **integers("u_token", "delta_token", "B_token", "C_token", "z_token", "state_slot", *strides),
        **integers("channels", "states"),
    }
    constexprs: dict[str, Constant] = {
        **dict.fromkeys((*_LAST, *ones), 1),
        "SOFTPLUS": True,
        "WIDE": FP32,
        "CHANNELS": tile.channels,
        "STATES": tile.states,
        "STAGES": tile.stages,
    }
    if op == "selective_scan_varlen":
        signature |= {**pointers("i32", "cu_seqlens"), **pointers("i1", "has_initial_state")}
    else:
        constexprs |= {"cu_seqlens": None, "has_initial_state": None}
    name = f"{dtype}-n{states}" + ("-states-last" if states_last else "")
    return Variant(op, name, f"{_MODULE}:_selective_scan", signature, constexprs, num_warps=tile.warps)


def variants(target: Target) -> list[Variant]:  # noqa: ARG001 - the launch is the same on every device
    """List them; see `staticfire.kernels.variant`."""
    found = []
    for op in ("selective_scan_varlen", "selective_state_update"):
        found += [_variant(op, "bf16", states) for states in (16, 64, 128, 256)]
        found += [_variant(op, "bf16", 16, states_last=True), _variant(op, "fp32", 16)]
    return found
