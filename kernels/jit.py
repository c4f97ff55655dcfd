"""Pieces that several kernels share: whose tile a program is, operands of products, and 8-bit floats.

The interpreter of Triton 3.9 reads the NaN and infinity of 8-bit floats as numbers and does not round to nearest; there
both conversions are done on the bits.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

E4M3_CAPABILITY = (8, 9)


def require_fp8(cache: Tensor) -> None:
    """Refuse a cache of 8-bit floats that the compiler has no conversions of on the cache's device.

    Args:
        cache: The cache, of any dtype.

    Raises:
        ValueError: It holds e4m3fn and lies on an NVIDIA GPU older than compute capability 8.9.
    """
    if cache.dtype is not torch.float8_e4m3fn or cache.device.type != "cuda" or torch.version.hip is not None:
        return
    capability = torch.cuda.get_device_capability(cache.device)
    if capability < E4M3_CAPABILITY:
        raise ValueError(
            f"a cache of float8_e4m3fn needs compute capability 8.9; this GPU has {capability[0]}.{capability[1]}: "
            "use float8_e5m2 or a cache in the compute dtype"
        )


_BY_HAND = tl.constexpr(bool(triton.knobs.runtime.interpret))


@triton.jit
def owner_of(tile, starts, count, TILE: tl.constexpr):
    """Find which of `count` ragged groups a tile of `TILE` items belongs to.

    Group g has the items from starts[g] up to starts[g + 1], and is given the tiles from starts[g] // TILE + g on: at
    least as many as it needs, the spare ones empty. No list of tiles has to be made, and groups may be empty.

    Returns:
        (group, its first item, the end of its items, first item of this tile); the tile is empty if its first item is
        not below the end.
    """
    low = tl.full([], 0, tl.int32)
    high = low + count
    while low < high - 1:
        middle = (low + high) // 2
        if tl.load(starts + middle).to(tl.int32) // TILE + middle <= tile:
            low = middle
        else:
            high = middle
    first = tl.load(starts + low).to(tl.int32)
    end = tl.load(starts + low + 1).to(tl.int32)
    return low, first, end, first + (tile - first // TILE - low) * TILE


@triton.jit
def widen(x):
    """Read numbers of any dtype but float64 as float32, 8-bit floats included, exactly."""
    dtype: tl.constexpr = x.dtype
    if _BY_HAND and dtype == tl.float8e4nv:
        bits = x.to(tl.uint8, bitcast=True).to(tl.uint16)
        # The bits of a float16 whose exponent is 8 too small.
        half = ((bits & 0x80) << 8) | ((bits & 0x7F) << 7)
        exact = half.to(tl.float16, bitcast=True).to(tl.float32) * 256.0
        return tl.where((bits & 0x7F) == 0x7F, float("nan"), exact)
    if _BY_HAND and dtype == tl.float8e5:
        return (x.to(tl.uint8, bitcast=True).to(tl.uint16) << 8).to(tl.float16, bitcast=True).to(tl.float32)
    return x.to(tl.float32)


@triton.jit
def operand(x, dtype: tl.constexpr, UPCAST: tl.constexpr):
    """Make an operand of a product of numbers that `dtype` holds exactly: int8, 8-bit floats, or `dtype` itself.

    UPCAST: multiply in float32 instead, where products of `dtype` cannot be trusted.
    """
    own: tl.constexpr = x.dtype
    if UPCAST:
        return widen(x)
    if own.is_fp8():
        return widen(x).to(dtype)
    return x.to(dtype)


@triton.jit
def to_fp8(x, dtype: tl.constexpr):
    """Round float32 to an 8-bit float, nearest and ties to even; what is too large becomes the largest; NaN stays."""
    largest: tl.constexpr = 448.0 if dtype == tl.float8e4nv else 57344.0
    x = tl.where(x > largest, largest, tl.where(x < -largest, -largest, x))
    if not _BY_HAND:
        return x.to(dtype)
    cut: tl.constexpr = 20 if dtype == tl.float8e4nv else 21
    smallest: tl.constexpr = 2.0**-6 if dtype == tl.float8e4nv else 2.0**-14
    # Between 2^23 and 2^24 a float32 has no fraction; scaled, one unit is one step of the numbers without exponent.
    steps: tl.constexpr = 1.5 * 2.0**14 if dtype == tl.float8e4nv else 1.5 * 2.0**7
    bits = x.to(tl.uint32, bitcast=True)
    half = (bits + ((1 << (cut - 1)) - 1) + ((bits >> cut) & 1)) >> cut
    normal = (half << cut).to(tl.float32, bitcast=True)
    rounded = tl.where(tl.abs(x) < smallest, (x + steps) - steps, normal)
    magnitude = tl.abs(rounded)
    sign = (bits >> 31) << 7
    if dtype == tl.float8e4nv:
        # As a float16 with an exponent 8 too small, see `widen`.
        code = (magnitude / 256.0).to(tl.float16).to(tl.uint16, bitcast=True) >> 7
    else:
        code = magnitude.to(tl.float16).to(tl.uint16, bitcast=True) >> 8
    code = tl.where(x != x, 0x7F, code.to(tl.uint32)) | sign
    return code.to(tl.uint8).to(dtype, bitcast=True)
