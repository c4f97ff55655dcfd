"""State copies, one program for a block of a state's elements, which it copies from slot to slot in order.

A copy may read what an earlier one wrote. Since no program touches another's elements, the order within each program
is the whole order.
"""

import triton
import triton.language as tl
from torch import Tensor

from staticfire.kernels.interpreter import require_device

BLOCK = 1024
INNER_DIMS = 3


@triton.jit
def _state_copy(
    state, src, dst, copies, slot_stride, stride0, stride1, stride2, elements, plane, width, BLOCK: tl.constexpr
):
    element = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = element < elements
    place = state + element // plane * stride0 + element % plane // width * stride1 + element % width * stride2
    for i in range(copies):
        source, target = tl.load(src + i).to(tl.int64), tl.load(dst + i).to(tl.int64)
        if (source >= 0) & (target >= 0):
            values = tl.load(place + source * slot_stride, mask=inside)
            tl.store(place + target * slot_stride, values, mask=inside)


def state_copy(state: Tensor, src: Tensor, dst: Tensor) -> None:
    """See `staticfire.kernels.state_copy.state_copy`."""
    require_device(state)
    inner = state
    while inner.dim() - 1 < INNER_DIMS:
        inner = inner.unsqueeze(1)
    if inner.dim() - 1 > INNER_DIMS:
        raise ValueError(f"state_copy: a state has at most {INNER_DIMS} dimensions; got {state.dim() - 1}")
    elements = inner[0].numel() if state.shape[0] else 0
    if elements and src.numel():
        block = min(BLOCK, triton.next_power_of_2(elements))
        _state_copy[(triton.cdiv(elements, block),)](
            inner,
            src.contiguous(),
            dst.contiguous(),
            src.numel(),
            *inner.stride(),
            elements,
            inner[0, 0].numel(),
            inner.shape[-1],
            BLOCK=block,
        )
