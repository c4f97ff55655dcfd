import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import kernel_cases as cases
from staticfire.kernels.int8_quant import quantize_per_channel
from staticfire.kernels.parity import assert_repeatable
from staticfire.kernels.rotary import rotary_embedding
from staticfire.kernels.silu_and_mul import silu_and_mul
from staticfire.kernels.testing import assert_close, bits_equal
from staticfire.kernels.topk_softmax import topk_softmax

pytestmark = [pytest.mark.engine, pytest.mark.interp]


@cases.examples
@given(cases.makers(), st.integers(0, 3), st.sampled_from([1, 16, 63, 75]))
def test_gate(make, tokens, width):
    x = make(tokens, 2 * width)
    before = x.clone()
    (out,) = assert_repeatable(lambda: [silu_and_mul(x, backend="triton")])
    assert_close("silu_and_mul", out, silu_and_mul(x, backend="reference"))
    assert bits_equal(x, before)


def test_gate_of_more_than_one_block_and_more_than_two_dimensions():
    x = cases.Maker(1, torch.float32, sliced=True)(2, 2, 2 * 1100)
    (out,) = assert_repeatable(lambda: [silu_and_mul(x, backend="triton")])
    assert_close("silu_and_mul", out, silu_and_mul(x, backend="reference"))


@pytest.mark.parametrize("shape", [(2, 0), (0, 4), (3, 0, 2)])
def test_gate_of_nothing(shape):
    assert silu_and_mul(torch.ones(shape), backend="triton").shape == (*shape[:-1], shape[-1] // 2)


def test_gate_of_far_values():
    x = torch.tensor([[0.0, -800.0, 800.0, 5.0, 5.0, 2.0]], dtype=torch.float64)
    assert silu_and_mul(x, backend="triton").tolist() == [[0.0, 0.0, 1600.0]]


@cases.examples
@given(
    cases.makers(),
    st.lists(st.integers(0, 49), max_size=3),
    st.sampled_from([(1, 1), (5, 2), (4, 4)]),
    st.sampled_from([2, 6, 16]),
)
def test_rotation(make, positions, heads, size):
    q, k = make(len(positions), heads[0], size), make(len(positions), heads[1], size)
    angles = cases.Maker(3, torch.float64 if make.dtype is torch.float64 else torch.float32, sliced=make.sliced)
    cos_sin, where = angles(50, size), torch.tensor(positions, dtype=torch.int64)
    before = q.clone()
    ours = assert_repeatable(lambda: rotary_embedding(q, k, where, cos_sin, backend="triton"))
    theirs = rotary_embedding(q, k, where, cos_sin, backend="reference")
    for actual, expected in zip(ours, theirs, strict=True):
        assert_close("rotary_embedding", actual, expected)
    assert bits_equal(q, before)


@cases.examples
@given(cases.makers(), st.integers(0, 4), st.sampled_from([1, 3, 8, 17]), st.data(), st.booleans(), st.booleans())
def test_routing(make, tokens, experts, data, renormalize, ties):
    top_k = data.draw(st.integers(1, experts))
    logits = make(tokens, experts, scale=3.0)
    if ties:
        logits = logits.round()
    weights, ids = assert_repeatable(lambda: topk_softmax(logits, top_k, renormalize, backend="triton"))
    expected, expected_ids = topk_softmax(logits, top_k, renormalize, backend="reference")
    assert_close("topk_softmax", ids, expected_ids)
    assert_close("topk_softmax", weights, expected, dtype=make.dtype)


def test_routing_with_experts_that_are_out_of_the_question():
    logits = torch.tensor([[-torch.inf, 1.0, -torch.inf]])
    weights, ids = topk_softmax(logits, 3, False, backend="triton")
    assert ids.tolist() == [[1, 0, 2]]
    assert weights.tolist() == [[1.0, 0.0, 0.0]]


@cases.examples
@given(
    st.lists(st.sampled_from([torch.nan, torch.inf, -torch.inf, 0.0, 1.0]), min_size=1, max_size=5),
    st.data(),
    st.booleans(),
)
def test_whatever_the_logits_the_experts_exist_and_are_distinct(row, data, renormalize):
    # An expert that does not exist would have the experts' kernel read beyond its weights.
    top_k = data.draw(st.integers(1, len(row)))
    logits = torch.tensor([row])
    expected, _ = topk_softmax(logits, top_k, renormalize, backend="reference")
    for backend in ("triton", "torch", "reference"):
        weights, ids = topk_softmax(logits, top_k, renormalize, backend=backend)
        assert len(set(ids[0].tolist())) == top_k
        assert set(ids[0].tolist()) <= set(range(len(row)))
        assert_close("topk_softmax", weights, expected)


@cases.examples
@given(
    cases.makers(),
    st.sampled_from([(1, 1), (3, 75), (2, 2, 16), (0, 3)]),
    st.sampled_from([1e-3, 1.0, 300.0]),
    st.booleans(),
)
def test_quantization(make, shape, scale, zero_row):
    w = make(*shape, scale=scale)
    if zero_row and shape[0]:
        w[0] = 0
    q, step = assert_repeatable(lambda: quantize_per_channel(w, backend="triton"))
    expected, expected_step = quantize_per_channel(w, backend="reference")
    assert_close("quantize_per_channel", q, expected)
    assert bits_equal(step, expected_step)


def test_quantization_of_rows_longer_than_a_block():
    w = cases.Maker(5, torch.float32)(2, 1100)
    w[0, 1050] = 50.0
    q, step = quantize_per_channel(w, backend="triton")
    expected, expected_step = quantize_per_channel(w, backend="reference")
    assert bits_equal(q, expected)
    assert bits_equal(step, expected_step)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_quantization_rounds_halves_to_even(dtype):
    w = torch.tensor([[127.0, 0.5, 1.5, 2.5, -0.5, -1.5, -127.0]], dtype=dtype)
    assert quantize_per_channel(w, backend="triton")[0].tolist() == [[127, 0, 2, 2, 0, -2, -127]]
