"""The comparator and the poison are themselves held to account: each kind of fault is planted and must be seen."""

import os

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from staticfire.kernels.testing import (
    assert_close,
    assert_untouched,
    bits_equal,
    embed,
    measure,
    poisoned,
)
from staticfire.kernels.tolerances import DTYPES, TOLERANCES, tolerance
from staticfire.kernels.topk_softmax import topk_softmax

pytestmark = pytest.mark.engine

OP = "selective_scan_varlen"


def ramp(dtype=torch.float64):
    return torch.arange(1, 13, dtype=dtype).reshape(3, 4)


def test_equal_tensors_pass():
    for dtype in DTYPES:
        assert_close(OP, ramp(dtype), ramp(dtype))
    assert_close(OP, torch.zeros(0, 3), torch.zeros(0, 3))
    special = torch.tensor([torch.nan, torch.inf, -torch.inf, 0.0])
    assert_close(OP, special, special.clone())


def test_another_shape_or_dtype_fails():
    with pytest.raises(AssertionError, match=r"got \[4, 3\] torch.float64, expected \[3, 4\]"):
        assert_close(OP, ramp().reshape(4, 3), ramp())
    with pytest.raises(AssertionError, match=r"torch.float32, expected .* torch.float64"):
        assert_close(OP, ramp().float(), ramp())


@given(st.integers(0, 2), st.integers(0, 3), st.sampled_from([torch.nan, torch.inf, -torch.inf]))
def test_a_special_value_in_another_place_fails_with_its_coordinates(i, j, value):
    actual = ramp()
    actual[i, j] = value
    for first, second in ((actual, ramp()), (ramp(), actual)):
        with pytest.raises(AssertionError, match=rf"first at \[{i}, {j}\]"):
            assert_close(OP, first, second)


def test_infinity_of_the_other_sign_fails():
    with pytest.raises(AssertionError, match=r"infinities differ at 1 of 1 places.*got inf, expected -inf"):
        assert_close(OP, torch.tensor([torch.inf]), torch.tensor([-torch.inf]))


@given(st.integers(0, 2), st.integers(0, 3), st.sampled_from(DTYPES))
def test_one_wrong_element_fails_with_both_values(i, j, dtype):
    actual = ramp(dtype)
    bounds = tolerance(OP, dtype)
    scale = float(ramp().square().mean().sqrt())
    actual[i, j] += 2 * max(bounds.max_error, 0.01) * scale
    with pytest.raises(AssertionError) as caught:
        assert_close(OP, actual, ramp(dtype))
    assert f"worst at [{i}, {j}]" in str(caught.value)
    assert f"expected {ramp(dtype)[i, j].item()!r}" in str(caught.value)


def test_many_small_errors_fail_by_their_rms():
    bounds = tolerance(OP, torch.float32)
    expected = torch.ones(1000)
    actual = expected + 0.9 * bounds.max_error
    assert measure(actual, expected).max_error < bounds.max_error
    with pytest.raises(AssertionError, match="RMS error"):
        assert_close(OP, actual, expected)


def test_errors_are_relative_to_the_rms():
    errors = measure(torch.tensor([3.0, 4.5]) * 1e-20, torch.tensor([3.0, 4.0]) * 1e-20)
    assert errors.max_error == pytest.approx(0.5 / 12.5**0.5, rel=1e-6)
    assert errors.rms_error == pytest.approx(0.5 / 25**0.5, rel=1e-6)
    assert errors.worst == (1,)


def test_a_reference_of_zeros_admits_only_zeros():
    with pytest.raises(AssertionError, match="max error inf"):
        assert_close(OP, torch.tensor([0.0, 1e-30]), torch.zeros(2))
    assert_close(OP, torch.zeros(2), torch.zeros(2))


def test_integers_are_equal_or_fail():
    with pytest.raises(AssertionError, match=r"integers differ at 1 of 2 places, first at \[1\]: got 3, expected 2"):
        assert_close("topk_softmax", torch.tensor([1, 3]), torch.tensor([1, 2]))


def test_every_row_of_the_table_has_a_reason_and_sane_bounds():
    for (op, dtype), row in TOLERANCES.items():
        assert row.reason, (op, dtype)
        assert 0 <= row.rms_error <= row.max_error <= 0.25, (op, dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_bounds_are_some_hundred_roundings_in_single_and_double_alike(dtype):
    for op in {op for op, _ in TOLERANCES}:
        bounds, unit = tolerance(op, dtype), torch.finfo(dtype).eps
        assert bounds.max_error <= 1000 * unit, op
        assert bounds.rms_error <= 300 * unit, op


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_outputs_that_are_float32_are_held_to_float32_whatever_the_inputs(dtype):
    expected, _ = topk_softmax(ramp()[None].flatten(1).to(dtype), 3, False, backend="reference")
    assert expected.dtype is torch.float32
    assert tolerance("topk_softmax", dtype) == tolerance("topk_softmax", torch.float32)
    with pytest.raises(AssertionError, match="max error"):
        assert_close("topk_softmax", expected.to(dtype).float(), expected, dtype=dtype)


def test_no_row_is_laxer_on_a_build_machine(monkeypatch):
    before = dict(TOLERANCES)
    for name in ("CI", "BUILDKITE", "GITHUB_ACTIONS"):
        monkeypatch.setitem(os.environ, name, "true")
    assert {key: tolerance(*key) for key in before} == before


def test_a_missing_row_names_the_nearest():
    with pytest.raises(KeyError, match=r"did you mean 'rms_norm'"):
        tolerance("rmsnorm", torch.float32)
    with pytest.raises(KeyError, match="float8"):
        tolerance("rms_norm", torch.float8_e4m3fn)


def test_poison_spoils_what_reads_it():
    assert bool(poisoned(2, 3, dtype=torch.bfloat16).isnan().all())
    assert int(poisoned(1, dtype=torch.int8)) == -128


@pytest.mark.parametrize("swap", [False, True])
def test_canaries_see_a_write_beside_the_view(swap):
    inner = ramp().reshape(2, 2, 3)
    state = embed(inner, swap=swap)
    assert torch.equal(state.view, inner)
    assert not state.view.is_contiguous()
    state.view.mul_(2)
    state.assert_canaries()
    for row, column in ((0, 0), (1, 0), (1, 8), (3, 4)):
        faulty = embed(inner, swap=swap)
        faulty.buffer[row, column] = 1.0
        with pytest.raises(AssertionError, match="poison around it has changed"):
            faulty.assert_canaries()


def test_a_touched_neighbour_is_seen_even_when_it_compares_equal():
    before = torch.zeros(3, 2)
    after = before.clone()
    after[1, 0] = -0.0
    with pytest.raises(AssertionError, match=r"slots \[1\] changed, though only \[0\]"):
        assert_untouched(before, after, [0, -1])
    assert_untouched(before, after, [1])
    nan = torch.full((2, 2), torch.nan)
    assert_untouched(nan, nan.clone(), [])


def test_bits():
    assert bits_equal(torch.tensor([torch.nan]), torch.tensor([torch.nan]))
    assert not bits_equal(torch.tensor([0.0]), torch.tensor([-0.0]))
    assert not bits_equal(torch.zeros(2), torch.zeros(2, dtype=torch.int32))
    assert not bits_equal(torch.zeros(2), torch.zeros(1, 2))
