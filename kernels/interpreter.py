"""Triton's interpreter: whether it is on, and what its arithmetic can be trusted with.

The interpreter keeps bfloat16 as the 16 bits themselves. Loads, stores and conversions to float32 are right; products
and sums of two of them (https://github.com/triton-lang/triton/issues/11584) and rounding to them need not be. What is
right is measured here once a process rather than believed of a version.
"""

from dataclasses import dataclass
from functools import cache

import torch
import triton
import triton.language as tl
from torch import Tensor

DTYPES = (torch.float64, torch.float32, torch.float16, torch.bfloat16)


class NoDeviceError(RuntimeError):
    """A Triton kernel was asked to run where there is neither a GPU nor the interpreter."""


def interpreted() -> bool:
    """Whether kernels of this process run in the interpreter; settled when Triton is imported."""
    return bool(triton.knobs.runtime.interpret)


def require_device(tensor: Tensor) -> None:
    """Refuse a launch that Triton would answer with a traceback from inside its driver.

    Args:
        tensor: Any operand of the launch.

    Raises:
        NoDeviceError: It lies in the memory of the CPU and kernels are not interpreted.
    """
    if tensor.device.type == "cpu" and not interpreted():
        raise NoDeviceError(
            "backend 'triton' with tensors on the CPU runs in Triton's interpreter only: set TRITON_INTERPRET=1 before "
            "anything imports triton, or use backend 'torch'"
        )


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What the interpreter computes correctly.

    Attributes:
        dot: dtypes of the operands of `tl.dot` (accumulated in float32, or float64 for float64).
        arithmetic: dtypes in which a * b + a is right.
        conversion: dtypes to which float32 is rounded to nearest, ties to even, and from which it is read exactly.
            `narrow` gets by without; a bare `.to` in a kernel does not.
    """

    dot: frozenset[torch.dtype]
    arithmetic: frozenset[torch.dtype]
    conversion: frozenset[torch.dtype]


@triton.jit
def _dot(a, b, out, WIDE: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    place = i[:, None] * N + i[None, :]
    tl.store(out + place, tl.dot(tl.load(a + place), tl.load(b + place), out_dtype=WIDE, input_precision="ieee"))


@triton.jit
def _multiply_add(a, b, out, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(a + i)
    tl.store(out + i, x * tl.load(b + i) + x)


@triton.jit
def _convert(a, there, back, N: tl.constexpr):
    i = tl.arange(0, N)
    narrow = tl.load(a + i).to(there.dtype.element_ty)
    tl.store(there + i, narrow)
    tl.store(back + i, narrow.to(tl.float32))


@cache
def capabilities() -> Capabilities:
    """Measure the interpreter on integers that every dtype holds exactly, and on the ties of rounding.

    Returns:
        What is right.

    Raises:
        NoDeviceError: The interpreter is off.
    """
    require_device(torch.empty(0))
    return Capabilities(
        frozenset(filter(_dot_is_right, DTYPES)),
        frozenset(filter(_arithmetic_is_right, DTYPES)),
        frozenset(filter(_conversion_is_right, DTYPES)),
    )


def _integers(*shape: int) -> Tensor:
    return torch.arange(torch.Size(shape).numel()).pow(3).remainder(7).sub(3).view(shape)


def _dot_is_right(dtype: torch.dtype) -> bool:
    size, wide = 16, torch.float64 if dtype is torch.float64 else torch.float32
    a, b = _integers(size, size), _integers(size, size).flip(1).contiguous()
    out = torch.full((size, size), torch.nan, dtype=wide)
    _dot[(1,)](a.to(dtype), b.to(dtype), out, tl.float64 if wide is torch.float64 else tl.float32, size)
    return torch.equal(out, (a @ b).to(wide))


def _arithmetic_is_right(dtype: torch.dtype) -> bool:
    a = _integers(16)
    out = torch.full((16,), torch.nan, dtype=dtype)
    _multiply_add[(1,)](a.to(dtype), a.to(dtype), out, 16)
    return torch.equal(out, (a * a + a).to(dtype))


def _conversion_is_right(dtype: torch.dtype) -> bool:
    ties = 1 + torch.arange(64, dtype=torch.float32) * 2.0**-11
    values = torch.cat([ties, -ties])
    there, back = values.new_full((128,), torch.nan, dtype=dtype), torch.full_like(values, torch.nan)
    _convert[(1,)](values, there, back, 128)
    return torch.equal(there, values.to(dtype)) and torch.equal(back, values.to(dtype).float())
