import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import kernel_cases as cases
from staticfire.kernels.testing import assert_close, bits_equal
from staticfire.kernels.topk_softmax import topk_softmax

pytestmark = pytest.mark.engine


@cases.examples
@given(cases.makers(), st.integers(0, 6), st.integers(1, 17), st.data(), st.booleans(), st.booleans())
def test_quick_path_agrees_with_reference(make, tokens, experts, data, renormalize, ties):
    top_k = data.draw(st.integers(1, experts))
    logits = make(tokens, experts, scale=3.0)
    if ties:
        logits = logits.round()
    weights, ids = topk_softmax(logits, top_k, renormalize)
    expected, expected_ids = topk_softmax(logits, top_k, renormalize, backend="reference")
    assert_close("topk_softmax", ids, expected_ids)
    assert_close("topk_softmax", weights, expected, dtype=make.dtype)
    if renormalize and tokens:
        assert torch.allclose(weights.sum(-1), torch.ones(tokens, dtype=weights.dtype))


@pytest.mark.parametrize("backend", ["torch", "reference"])
def test_hand_numbers_in_float64(backend):
    logits = torch.tensor([[1.0, 3.0, 2.0, 3.0]], dtype=torch.float64)
    weights, ids = topk_softmax(logits, 3, False, backend=backend)
    total = math.fsum(math.exp(v) for v in (1, 3, 2, 3))
    assert ids.tolist() == [[1, 3, 2]]
    assert weights[0].tolist() == pytest.approx([math.exp(v) / total for v in (3, 3, 2)], rel=1e-15)
    weights, _ = topk_softmax(logits, 3, True, backend=backend)
    total = math.fsum(math.exp(v) for v in (3, 3, 2))
    assert weights[0].tolist() == pytest.approx([math.exp(v) / total for v in (3, 3, 2)], rel=1e-15)


@pytest.mark.parametrize("backend", ["torch", "reference"])
def test_equal_logits_choose_the_lower_expert(backend):
    _, ids = topk_softmax(torch.zeros(2, 40), 5, False, backend=backend)
    assert ids.tolist() == [[0, 1, 2, 3, 4]] * 2


@pytest.mark.parametrize("backend", ["torch", "reference"])
def test_agrees_with_transformers(backend):
    from types import SimpleNamespace

    from transformers.models.jamba.modeling_jamba import JambaTopKRouter

    config = SimpleNamespace(num_experts_per_tok=2, num_experts=4, hidden_size=16)
    router = JambaTopKRouter(config).requires_grad_(requires_grad=False)
    make = cases.Maker(7, torch.float32)
    router.weight.copy_(make(4, 16))
    logits, expected, expected_ids = router(make(9, 16))
    weights, ids = topk_softmax(logits, 2, False, backend=backend)
    assert_close("topk_softmax", ids, expected_ids)
    assert_close("topk_softmax", weights, expected)


def test_large_logits_do_not_overflow():
    weights, _ = topk_softmax(torch.tensor([[1e4, -1e4, 1e4]]), 2, False)
    assert weights.tolist() == [[0.5, 0.5]]


@pytest.mark.parametrize("top_k", [0, 5, -1])
def test_an_impossible_k_is_refused(top_k):
    with pytest.raises(ValueError, match=rf"in \[1, 4\] \(experts\); got {top_k}"):
        topk_softmax(torch.zeros(1, 4), top_k, False)


def test_twice_is_bitwise_the_same():
    logits = cases.Maker(1, torch.float32)(16, 8)
    assert bits_equal(topk_softmax(logits, 2, True)[0], topk_softmax(logits, 2, True)[0])
