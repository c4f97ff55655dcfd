import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import kernel_cases as cases
from staticfire.kernels.silu_and_mul import silu_and_mul
from staticfire.kernels.testing import assert_close, bits_equal

pytestmark = pytest.mark.engine


@cases.examples
@given(cases.makers(), st.integers(0, 5), st.integers(1, 40))
def test_quick_path_agrees_with_reference(make, tokens, inner):
    x = make(tokens, 2 * inner)
    before = x.clone()
    assert_close("silu_and_mul", silu_and_mul(x), silu_and_mul(x, backend="reference"))
    assert bits_equal(x, before)


@pytest.mark.parametrize("backend", ["torch", "reference"])
def test_gate_comes_first_and_float64_stays_float64(backend):
    x = cases.Maker(2, torch.float64)(3, 10)
    out = silu_and_mul(x, backend=backend)
    for row, got in zip(x.tolist(), out.tolist(), strict=True):
        expected = [g / (1 + math.exp(-g)) * u for g, u in zip(row[:5], row[5:], strict=True)]
        assert got == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("backend", ["torch", "reference"])
def test_far_values(backend):
    x = torch.tensor([[0.0, -800.0, 800.0, 5.0, 5.0, 2.0]], dtype=torch.float64)
    assert silu_and_mul(x, backend=backend).tolist() == [[0.0, 0.0, 1600.0]]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_agrees_with_transformers(dtype):
    from transformers.activations import ACT2FN

    x = cases.Maker(4, dtype)(5, 64)
    gate, up = x.chunk(2, -1)
    assert_close("silu_and_mul", silu_and_mul(x), ACT2FN["silu"](gate) * up)


def test_an_odd_width_is_refused():
    with pytest.raises(ValueError, match="even; got 3"):
        silu_and_mul(torch.zeros(1, 3))
