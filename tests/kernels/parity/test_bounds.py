import pytest
import torch
import triton
import triton.language as tl

from staticfire.kernels.bounds import strict_bounds

pytestmark = [pytest.mark.engine, pytest.mark.interp]


@triton.jit
def _copy(x, out, x_stride, size, LOAD: tl.constexpr, STORE: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    values = tl.load(x + i * x_stride, mask=i < size + LOAD, other=0)
    tl.store(out + i, values, mask=i < size + STORE)


def launch(stride=1, load=0, store=0):
    x, out = torch.arange(20.0)[4::stride][:3], torch.zeros(8)[:3]
    _copy[(1,)](x, out, stride, 3, load, store, 4)
    return out.tolist()


def test_what_stays_inside_is_let_through():
    with strict_bounds():
        assert launch() == [4, 5, 6]
        assert launch(stride=5) == [4, 9, 14]


def test_a_load_that_leaves_its_tensor_is_found_though_its_value_goes_nowhere():
    assert launch(load=1) == [4, 5, 6]
    with strict_bounds(), pytest.raises(Exception, match="a load of 1 of 4 lanes outside every tensor"):
        launch(load=1)
    assert launch(load=1) == [4, 5, 6]


def test_a_store_that_leaves_its_tensor_is_found():
    with strict_bounds(), pytest.raises(Exception, match="a store of 1 of 4 lanes outside every tensor"):
        launch(store=1)


@triton.jit
def _dense(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.load(x + i))


def test_the_gap_between_two_elements_is_outside():
    x, out = torch.arange(8.0)[::2], torch.zeros(4)
    with strict_bounds(), pytest.raises(Exception, match="a load of 2 of 4 lanes"):
        _dense[(1,)](x, out, 4)


def test_an_empty_tensor_has_no_inside():
    x, out = torch.zeros(0), torch.zeros(4)
    with strict_bounds(), pytest.raises(Exception, match="a load of 4 of 4 lanes"):
        _dense[(1,)](x, out, 4)
