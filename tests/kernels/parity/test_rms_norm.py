import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import kernel_cases as cases
from staticfire.kernels.parity import assert_repeatable
from staticfire.kernels.rms_norm import fused_add_rms_norm, rms_norm, rms_norm_parts
from staticfire.kernels.testing import assert_close, bits_equal

pytestmark = [pytest.mark.engine, pytest.mark.interp]

widths = st.sampled_from([1, 2, 16, 63, 64, 75])


@cases.examples
@given(cases.makers(), st.integers(0, 3), widths, st.sampled_from([1e-6, 0.5]))
def test_norm(make, tokens, hidden, eps):
    x, weight = make(tokens, hidden), make(1, hidden)[0]
    (out,) = assert_repeatable(lambda: [rms_norm(x, weight, eps, backend="triton")])
    assert_close("rms_norm", out, rms_norm(x, weight, eps, backend="reference"))


@cases.examples
@given(cases.makers(), st.integers(0, 3), widths)
def test_addition_and_norm(make, tokens, hidden):
    x, residual, weight = make(tokens, hidden), make(tokens, hidden), make(1, hidden)[0]
    before = x.clone(), residual.clone()
    normed, total = assert_repeatable(lambda: fused_add_rms_norm(x, residual, weight, 1e-6, backend="triton"))
    expected, expected_total = fused_add_rms_norm(x, residual, weight, 1e-6, backend="reference")
    assert_close("fused_add_rms_norm", normed, expected)
    assert bits_equal(total, expected_total)
    assert bits_equal(x, before[0])
    assert bits_equal(residual, before[1])


@cases.examples
@given(cases.makers(), st.integers(0, 3), st.lists(st.sampled_from([1, 5, 16, 33]), min_size=1, max_size=4))
def test_parts(make, tokens, sizes):
    x, weight = make(tokens, sum(sizes)), make(1, sum(sizes))[0]
    parts = tuple(sizes)
    (out,) = assert_repeatable(lambda: [rms_norm_parts(x, weight, 1e-6, parts, backend="triton")])
    assert_close("rms_norm_parts", out, rms_norm_parts(x, weight, 1e-6, parts, backend="reference"))


def test_every_stride_is_followed():
    make = cases.Maker(1, torch.float32)
    x, residual, weight = make(75, 4).t(), make(150, 4).t()[:, ::2], make(150, 1)[::2, 0]
    normed, total = fused_add_rms_norm(x, residual, weight, 1e-6, backend="triton")
    expected = fused_add_rms_norm(x, residual, weight, 1e-6, backend="reference")
    assert_close("fused_add_rms_norm", normed, expected[0])
    assert bits_equal(total, expected[1])
