"""Rounding a wide value to the dtype it is stored in, alike in compiled and interpreted kernels.

Compiled, float32 to bfloat16 rounds to nearest, ties to even. The interpreter of Triton 3.9 cuts the low bits off
instead, which doubles the error and always towards zero; there the rounding is done on the bits.
"""

import triton
import triton.language as tl

_BY_HAND = tl.constexpr(bool(triton.knobs.runtime.interpret))


@triton.jit
def narrow(x, dtype: tl.constexpr):
    """Round `x` to `dtype`, nearest and ties to even; NaN stays NaN."""
    if _BY_HAND and dtype == tl.bfloat16:
        wide = x.to(tl.float32)
        bits = wide.to(tl.uint32, bitcast=True)
        # Adding 0x7FFF and the bit that decides a tie carries into the kept half exactly when it must be rounded up.
        rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
        quiet = (bits >> 16) | 0x40
        return tl.where(wide != wide, quiet, rounded).to(tl.uint16).to(tl.bfloat16, bitcast=True)
    return x.to(dtype)
