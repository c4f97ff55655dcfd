from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import kernel_cases as cases
from staticfire.kernels.int8_quant import quantize_per_channel
from staticfire.kernels.testing import assert_close, bits_equal

pytestmark = pytest.mark.engine

shapes = st.sampled_from([(1, 1), (5, 8), (3, 4, 8), (2, 1, 1), (0, 3)])


@cases.examples
@given(cases.makers(), shapes, st.sampled_from([1e-3, 1.0, 300.0]), st.booleans())
def test_quick_path_agrees_with_reference_and_with_the_law(make, shape, scale, zero_row):
    w = make(*shape, scale=scale)
    if zero_row and shape[0]:
        w[0] = 0
    q, step = quantize_per_channel(w)
    expected, expected_step = quantize_per_channel(w, backend="reference")
    assert_close("quantize_per_channel", q, expected)
    assert bits_equal(step, expected_step)
    assert step.shape == w.shape[:-1]
    assert step.dtype is torch.float32
    assert q.numel() == 0 or int(q.min()) >= -127
    wide = step.double().unsqueeze(-1)
    assert bool(((q.double() * wide - w.double()).abs() <= wide * (0.5 + 1e-4)).all())
    assert bool((step > 0).all())


@pytest.mark.parametrize("backend", ["torch", "reference"])
def test_halves_go_to_even_and_minus_128_is_unused(backend):
    w = torch.tensor([[127.0, 0.5, 1.5, 2.5, -0.5, -1.5, -127.0]])
    q, scale = quantize_per_channel(w, backend=backend)
    assert scale.tolist() == [1.0]
    assert q.tolist() == [[127, 0, 2, 2, 0, -2, -127]]
    q, _ = quantize_per_channel(torch.tensor([[-3.0, 1.0]]), backend=backend)
    assert q.tolist() == [[-127, 42]]


@pytest.mark.parametrize("backend", ["torch", "reference"])
@pytest.mark.parametrize("value", [0.0, -0.0, 1e-44])
def test_a_row_without_magnitude_has_scale_one(backend, value):
    w = torch.tensor([[value] * 3, [1.0, 2.0, 254.0]])
    q, scale = quantize_per_channel(w, backend=backend)
    assert scale.tolist() == [1.0, 2.0]
    assert q.tolist() == [[0, 0, 0], [0, 1, 127]]


@pytest.mark.parametrize("backend", ["torch", "reference"])
def test_a_scale_too_coarse_for_its_row_saturates_symmetrically(backend):
    # 190 / 127 of the smallest float32 rounds to one of them: the quotients are 190 and -190.
    tiny = 190 * 2.0**-149
    q, scale = quantize_per_channel(torch.tensor([[tiny, -tiny]]), backend=backend)
    assert scale.tolist() == [2.0**-149]
    assert q.tolist() == [[127, -127]]


@pytest.mark.parametrize("backend", ["torch", "reference"])
def test_agrees_with_exact_fractions(backend):
    w = cases.Maker(14, torch.float32)(6, 9)
    q, scale = quantize_per_channel(w, backend=backend)
    for row, got, step in zip(w.tolist(), q.tolist(), scale.tolist(), strict=True):
        assert step == np.float32(Fraction(max(abs(v) for v in row)) / 127)
        exact = [Fraction(v) / Fraction(step) for v in row]
        for value, quotient in zip(got, exact, strict=True):
            assert value == max(-127, min(127, round(quotient)))


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_weights_that_are_not_finite_are_refused(value):
    w = torch.zeros(2, 3, 4)
    w[1, 0, 2] = value
    with pytest.raises(ValueError, match=r"finite; got (nan|inf) at \[1, 0, 2\]"):
        quantize_per_channel(w)
