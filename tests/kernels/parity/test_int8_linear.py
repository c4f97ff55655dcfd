import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import kernel_cases as cases
from memory_layouts import far
from staticfire.kernels.int8_linear import int8_linear
from staticfire.kernels.int8_linear import triton as launcher
from staticfire.kernels.int8_quant import quantize_per_channel
from staticfire.kernels.parity import assert_repeatable
from staticfire.kernels.testing import assert_close, bits_equal, embed
from staticfire.kernels.tiles import ProductTiles

pytestmark = [pytest.mark.engine, pytest.mark.interp]


def compare(x, w, scale, bias):
    before = x.clone(), w.clone()
    (out,) = assert_repeatable(lambda: [int8_linear(x, w, scale, bias, backend="triton")])
    assert_close("int8_linear", out, int8_linear(x, w, scale, bias, backend="reference"))
    assert bits_equal(x, before[0])
    assert bits_equal(w, before[1])


@cases.examples
@given(
    cases.makers(),
    st.sampled_from([0, 1, 16, 17, 35]),
    st.sampled_from([(1, 1), (16, 16), (33, 19), (75, 5)]),
    st.booleans(),
    st.booleans(),
)
def test_layer(make, tokens, sizes, biased, transposed):
    inputs, outputs = sizes
    w, scale = quantize_per_channel(make(outputs, inputs, scale=inputs**-0.5))
    lying = embed(w).view if not transposed else w.t().contiguous().t()
    compare(make(tokens, inputs), lying, scale, make(2, 2 * outputs)[1, ::2] if biased else None)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_tiles_of_a_gpu(monkeypatch, dtype):
    monkeypatch.setattr(launcher, "product_tiles", lambda *_, **__: ProductTiles(128, 128, 64, 8, 3))
    make = cases.Maker(4, dtype, sliced=True)
    w, scale = quantize_per_channel(make(150, 100))
    compare(make(140, 100), w, scale, make(1, 150)[0])


@pytest.mark.parametrize("axis", [0, 1])
def test_operands_beyond_the_reach_of_32_bits(tmp_path, axis):
    make = cases.Maker(9, torch.float32)
    w, scale = quantize_per_channel(make(3, 18))
    x = make(3, 18)
    near = int8_linear(x, w, scale, backend="triton")
    assert bits_equal(int8_linear(x, far(tmp_path, "w", w, axis), scale, backend="triton"), near)
    assert bits_equal(int8_linear(far(tmp_path, "x", x, axis), w, scale, backend="triton"), near)
