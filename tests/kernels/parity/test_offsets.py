import pytest
import torch
import triton
import triton.language as tl

from staticfire.kernels.offsets import strict_offsets

pytestmark = [pytest.mark.engine, pytest.mark.interp]

REFUSED = "product that was taken in 32 bits"


@triton.jit
def _direct(x, out, stride, size, SIZE: tl.constexpr, N: tl.constexpr):
    i = tl.program_id(0) + tl.arange(0, N)
    tl.store(out + i, tl.load(x + i * stride))


@triton.jit
def _in_a_sum(x, out, stride, size, SIZE: tl.constexpr, N: tl.constexpr):
    i = tl.program_id(0) + tl.arange(0, N)
    place = (1 + i[None, :] * stride) - 1
    tl.store(out + i[None, :], tl.load(x + tl.broadcast_to(place, [1, N])))


@triton.jit
def _widened_too_late(x, out, stride, size, SIZE: tl.constexpr, N: tl.constexpr):
    i = tl.program_id(0) + tl.arange(0, N)
    tl.store(out + i, tl.load(x + (i * stride).to(tl.int64)))


@triton.jit
def _promoted_too_late(x, out, stride, size, SIZE: tl.constexpr, N: tl.constexpr):
    i = tl.program_id(0) + tl.arange(0, N)
    zero = tl.zeros([N], tl.int64)
    tl.store(out + i, tl.load(x + (zero + i * stride)))


@triton.jit
def _multiplied_again(x, out, stride, size, SIZE: tl.constexpr, N: tl.constexpr):
    i = tl.program_id(0) + tl.arange(0, N)
    one = tl.full([N], 1, tl.int64)
    tl.store(out + i, tl.load(x + i * stride * one))


@triton.jit
def _by_a_size(x, out, stride, size, SIZE: tl.constexpr, N: tl.constexpr):
    i = tl.program_id(0) + tl.arange(0, N)
    tl.store(out + i, tl.load(x + i * SIZE))


@triton.jit
def _subtracted(x, out, stride, size, SIZE: tl.constexpr, N: tl.constexpr):
    i = tl.program_id(0) + tl.arange(0, N)
    tl.store(out + i, tl.load(x - -i * stride))


@triton.jit
def _wide(x, out, stride, size, SIZE: tl.constexpr, N: tl.constexpr):
    i = (tl.program_id(0) + tl.arange(0, N)).to(tl.int64)
    tl.store(out + i, tl.load(x + i * stride))


@triton.jit
def _by_a_size_widened(x, out, stride, size, SIZE: tl.constexpr, N: tl.constexpr):
    i = (tl.program_id(0) * SIZE + tl.arange(0, N)).to(tl.int64)
    tl.store(out + i, tl.load(x + i * stride))


@triton.jit
def _by_a_tile(x, out, stride, size, SIZE: tl.constexpr, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(out + i, tl.load(x + i.to(tl.int64) * stride))


@triton.jit
def _bounded(x, out, stride, size, SIZE: tl.constexpr, N: tl.constexpr):
    i = tl.minimum(tl.program_id(0) * stride, size) + tl.arange(0, N)
    tl.store(out + i, tl.load(x + i.to(tl.int64) * stride))


def launch(kernel, grid=1):
    x, out = torch.arange(12.0), torch.zeros(4)
    kernel[(grid,)](x, out, 3, 0, 3, 4)
    return out.tolist()


TOO_NARROW = [_direct, _in_a_sum, _widened_too_late, _promoted_too_late, _multiplied_again, _by_a_size, _subtracted]


@pytest.mark.parametrize("kernel", TOO_NARROW, ids=lambda kernel: kernel.fn.__name__)
def test_a_product_of_32_bits_in_an_offset_is_found_though_it_does_not_wrap(kernel):
    assert launch(kernel) == [0, 3, 6, 9]
    with strict_offsets(), pytest.raises(Exception, match=REFUSED):
        launch(kernel)
    assert launch(kernel) == [0, 3, 6, 9]


WIDE_ENOUGH = [_wide, _by_a_size_widened, _by_a_tile, _bounded]


@pytest.mark.parametrize("kernel", WIDE_ENOUGH, ids=lambda kernel: kernel.fn.__name__)
def test_items_are_numbered_in_32_bits_and_offsets_have_64(kernel):
    with strict_offsets():
        assert launch(kernel) == [0, 3, 6, 9]
