import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import kernel_cases as cases
from staticfire.kernels.rms_norm import fused_add_rms_norm, rms_norm
from staticfire.kernels.testing import assert_close, bits_equal

pytestmark = pytest.mark.engine


@cases.examples
@given(cases.makers(), st.integers(0, 5), st.integers(1, 40), st.sampled_from([1e-6, 1e-5, 0.5]))
def test_quick_path_agrees_with_reference(make, tokens, hidden, eps):
    x, weight = make(tokens, hidden), make(1, hidden)[0]
    assert_close("rms_norm", rms_norm(x, weight, eps), rms_norm(x, weight, eps, backend="reference"))


@cases.examples
@given(cases.makers(), st.integers(0, 5), st.integers(1, 40))
def test_fused_addition_agrees_and_changes_no_input(make, tokens, hidden):
    x, residual, weight = make(tokens, hidden), make(tokens, hidden), make(1, hidden)[0]
    before = x.clone(), residual.clone()
    normed, total = fused_add_rms_norm(x, residual, weight, 1e-6)
    expected, expected_total = fused_add_rms_norm(x, residual, weight, 1e-6, backend="reference")
    assert_close("fused_add_rms_norm", normed, expected)
    assert bits_equal(total, expected_total)
    assert bits_equal(total, before[0] + before[1])
    assert bits_equal(x, before[0])
    assert bits_equal(residual, before[1])


@pytest.mark.parametrize("backend", ["torch", "reference"])
def test_hand_numbers(backend):
    x = torch.tensor([[3.0, 4.0], [0.0, 0.0]], dtype=torch.float64)
    out = rms_norm(x, torch.tensor([1.0, 2.0], dtype=torch.float64), 0.5, backend=backend)
    root = math.sqrt(12.5 + 0.5)
    assert out.tolist() == [pytest.approx([3 / root, 8 / root], rel=1e-15), [0.0, 0.0]]


@pytest.mark.parametrize("backend", ["torch", "reference"])
def test_float64_has_no_float32_step(backend):
    make = cases.Maker(3, torch.float64)
    x, weight = make(3, 33), make(1, 33)[0]
    out = rms_norm(x, weight, 1e-6, backend=backend)
    for row, got in zip(x.tolist(), out.tolist(), strict=True):
        root = math.sqrt(math.fsum(v * v for v in row) / len(row) + 1e-6)
        assert got == pytest.approx([w * v / root for v, w in zip(row, weight.tolist(), strict=True)], rel=1e-14)


@pytest.mark.parametrize("backend", ["torch", "reference"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_agrees_with_transformers(backend, dtype):
    from transformers.models.jamba.modeling_jamba import JambaRMSNorm

    make = cases.Maker(5, dtype)
    x, weight = make(7, 64), make(1, 64)[0]
    theirs = JambaRMSNorm(64, eps=1e-6)
    theirs.weight = torch.nn.Parameter(weight, requires_grad=False)
    assert_close("rms_norm", rms_norm(x, weight, 1e-6, backend=backend), theirs(x))


@pytest.mark.parametrize("backend", ["torch", "reference"])
def test_the_quotient_is_rounded_before_the_weight(backend):
    # Rounding once, after the weight, would change a quarter of the elements by one unit in the last place.
    from transformers.models.jamba.modeling_jamba import JambaRMSNorm

    make = cases.Maker(6, torch.bfloat16)
    x, weight = make(64, 64), make(1, 64)[0]
    theirs = JambaRMSNorm(64, eps=1e-6)
    theirs.weight = torch.nn.Parameter(weight, requires_grad=False)
    same = rms_norm(x, weight, 1e-6, backend=backend) == theirs(x)
    assert float(same.float().mean()) > 0.99


def test_half_types_sum_in_float32():
    # In float16 the square of 300 is infinite; in bfloat16 a sum of 4096 ones stops at 256.
    big = torch.full((1, 8), 300.0, dtype=torch.float16)
    assert rms_norm(big, torch.ones(8, dtype=torch.float16), 0.0).tolist() == [[1.0] * 8]
    ones = torch.ones(1, 4096, dtype=torch.bfloat16)
    assert rms_norm(ones, ones[0], 0.0).tolist() == [[1.0] * 4096]


def test_twice_is_bitwise_the_same():
    make = cases.Maker(1, torch.float32)
    x, weight = make(16, 64), make(1, 64)[0]
    assert bits_equal(rms_norm(x, weight, 1e-6), rms_norm(x, weight, 1e-6))
