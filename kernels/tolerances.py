"""The one table of tolerances: how far a quick path may be from its reference, and why.

Errors are relative to the root mean square of the reference, so a row reads "this many RMS". There is no other
tolerance for an op, and none depends on where the tests run.
"""

from typing import NamedTuple

import torch

from staticfire.kernels.names import did_you_mean

DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)
"""Every dtype that ops are held to."""


class Tolerance(NamedTuple):
    """Bounds on the error of one op in one dtype.

    Attributes:
        max_error: Largest |actual - expected| / RMS(expected).
        rms_error: RMS(actual - expected) / RMS(expected).
        reason: Where the error comes from.
    """

    max_error: float
    rms_error: float
    reason: str


_Rows = dict[torch.dtype, tuple[float, float]]

# float32 and float64: sums may cancel, and where a tensor has few elements its RMS cancels with them. What is seen over
# random inputs is some 50 times below the bounds of such ops; without sums, or with sums of one sign, it is 10 times.
# Half types: results that differ before the last rounding may round to neighbours, 2^-7 of an element apart in
# bfloat16 and 2^-10 in float16 (twice that where two roundings follow each other), and gated outputs have elements
# of 10 to 15 RMS. The RMS bound is the sharper one.
_EXACT: _Rows = dict.fromkeys(DTYPES, (0.0, 0.0))
_ROUNDED: _Rows = {
    torch.float64: (1e-14, 2e-15),
    torch.float32: (5e-6, 1e-6),
    torch.bfloat16: (1.2e-1, 1.6e-2),
    torch.float16: (1.5e-2, 2e-3),
}
_SUMMED: _Rows = {
    torch.float64: (1e-13, 2e-14),
    torch.float32: (4e-5, 1e-5),
    torch.bfloat16: (1.2e-1, 1.6e-2),
    torch.float16: (1.5e-2, 2e-3),
}
_CHAINED: _Rows = {
    torch.float64: (2e-13, 6e-14),
    torch.float32: (1e-4, 3e-5),
    torch.bfloat16: (1.2e-1, 1.6e-2),
    torch.float16: (1.5e-2, 2e-3),
}
_ROUNDED_INSIDE: _Rows = {
    torch.float64: (2e-13, 6e-14),
    torch.float32: (1e-4, 3e-5),
    torch.bfloat16: (2.5e-1, 3e-2),
    torch.float16: (3e-2, 4e-3),
}
_FLOAT32_AT_LEAST: _Rows = {
    dtype: _ROUNDED[torch.float64 if dtype is torch.float64 else torch.float32] for dtype in DTYPES
}

_WHY: dict[str, tuple[_Rows, str]] = {
    "rms_norm": (
        _ROUNDED,
        "the mean square is summed in another order; half types round the quotient, then the product",
    ),
    "fused_add_rms_norm": (_ROUNDED, "as rms_norm, after an addition that is the same in both"),
    "rms_norm_parts": (_ROUNDED, "as rms_norm; the sum runs over the zeros of the other parts too"),
    "silu_and_mul": (_ROUNDED, "one exponential from another library; half types round silu, then the product"),
    "rotary_embedding": (_ROUNDED, "two products and a sum, fused or not; rounded once"),
    "causal_conv1d_varlen": (_SUMMED, "a sum over the taps in another order; rounded once"),
    "causal_conv1d_update": (_SUMMED, "a sum over the taps in another order; rounded once"),
    "selective_scan_varlen": (_CHAINED, "a rounding per step, damped by decays below 1; outputs rounded once"),
    "selective_state_update": (_CHAINED, "one step of the scan"),
    "reshape_and_cache": (_EXACT, "values are moved, not computed"),
    "paged_attention": (
        _ROUNDED_INSIDE,
        "sums over positions in blocks; half types round the weights, then the output",
    ),
    "topk_softmax": (
        _FLOAT32_AT_LEAST,
        "the normaliser is summed in another order; weights are float32 for half types, and so is their tolerance",
    ),
    "fused_moe": (_ROUNDED_INSIDE, "sums over channels in blocks; half types round between the two projections"),
    "int8_linear": (_SUMMED, "a sum over channels in another order, scaled and rounded once"),
    "quantize_per_channel": (_EXACT, "the formula fixes every rounding"),
    "state_copy": (_EXACT, "values are moved, not computed"),
}

TOLERANCES: dict[tuple[str, torch.dtype], Tolerance] = {
    (op, dtype): Tolerance(*bounds, reason) for op, (rows, reason) in _WHY.items() for dtype, bounds in rows.items()
}
"""(op, dtype of its floating-point inputs) -> bounds."""


def tolerance(op: str, dtype: torch.dtype) -> Tolerance:
    """Look up the bounds of an op.

    Args:
        op: Name of the public function.
        dtype: dtype of its floating-point inputs.

    Returns:
        The bounds.

    Raises:
        KeyError: There is no such row.
    """
    found = TOLERANCES.get((op, dtype))
    if found is None:
        hint = "" if op in _WHY else did_you_mean(op, _WHY)
        raise KeyError(f"no tolerance for ({op!r}, {dtype}); dtypes: {', '.join(map(str, DTYPES))}{hint}")
    return found
