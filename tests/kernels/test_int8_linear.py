from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import kernel_cases as cases
from staticfire.kernels.int8_linear import int8_linear
from staticfire.kernels.int8_quant import quantize_per_channel
from staticfire.kernels.testing import assert_close, bits_equal

pytestmark = pytest.mark.engine

BACKENDS = ["torch", "reference", pytest.param("triton", marks=pytest.mark.interp)]


def layer(make, tokens, inputs, outputs, *, scale=1.0):
    w, step = quantize_per_channel(make(outputs, inputs, scale=inputs**-0.5))
    return make(tokens, inputs, scale=scale), w, step, make(1, outputs)[0]


@cases.examples
@given(cases.makers(), st.sampled_from([0, 1, 5, 75]), st.sampled_from([(1, 1), (16, 8), (33, 63)]), st.booleans())
def test_quick_path_agrees_with_reference(make, tokens, sizes, biased):
    x, w, scale, bias = layer(make, tokens, *sizes)
    arguments = (x, w, scale, bias if biased else None)
    assert_close("int8_linear", int8_linear(*arguments), int8_linear(*arguments, backend="reference"))


@pytest.mark.parametrize("backend", BACKENDS)
def test_float64_equals_exact_fractions(backend):
    x, w, scale, bias = layer(cases.Maker(3, torch.float64), 3, 7, 4)
    out = int8_linear(x, w, scale, bias, backend=backend)
    for t in range(3):
        for r in range(4):
            total = sum(Fraction(a) * b for a, b in zip(x[t].tolist(), w[r].tolist(), strict=True))
            exact = float(total * Fraction(float(scale[r])) + Fraction(float(bias[r])))
            np.testing.assert_allclose(float(out[t, r]), exact, rtol=0, atol=1e-15 * 8)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_types_round_once_and_a_large_sum_is_scaled_before_it(backend, dtype):
    x = torch.full((1, 40), 64.0, dtype=dtype)
    w = torch.full((2, 40), 127, dtype=torch.int8)
    scale, bias = torch.tensor([2.0**-10, 2.0**-9]), torch.tensor([0.5, -1.0], dtype=dtype)
    out = int8_linear(x, w, scale, bias, backend=backend)
    # 40 * 64 * 127 = 325120 is beyond float16.
    expected = torch.tensor([[317.5 + 0.5, 635.0 - 1.0]], dtype=torch.float64).to(dtype)
    assert bits_equal(out, expected)


@pytest.mark.parametrize("backend", BACKENDS)
def test_agrees_with_the_layer_of_dequantized_weights(backend):
    x, w, scale, bias = layer(cases.Maker(4, torch.float32), 9, 32, 12)
    theirs = torch.nn.functional.linear(x.double(), w.double() * scale.double()[:, None], bias.double())
    assert_close("int8_linear", int8_linear(x, w, scale, bias, backend=backend), theirs.float())


def test_what_does_not_fit_is_refused():
    x, w, scale, bias = layer(cases.Maker(4, torch.float32), 2, 8, 3)
    with pytest.raises(ValueError, match=r"weights are int8; got torch.float32"):
        int8_linear(x, w.float(), scale)
    with pytest.raises(ValueError, match=r"got \[2, 7\], \[3, 8\], \[3\] and \[3\]"):
        int8_linear(x[:, :7], w, scale, bias)
    with pytest.raises(ValueError, match=r"got \[2, 8\], \[3, 8\], \[2\] and None"):
        int8_linear(x, w, scale[:2])
    with pytest.raises(ValueError, match=r"got \[2, 8\], \[3, 8\], \[3\] and \[1\]"):
        int8_linear(x, w, scale, bias[:1])
