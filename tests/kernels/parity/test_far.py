"""Strides so large that an index must have 64 bits before they multiply it, for the ops of one tile a row."""

import pytest
import torch

import kernel_cases as cases
from memory_layouts import far
from staticfire.kernels.reshape_and_cache import reshape_and_cache
from staticfire.kernels.rms_norm import fused_add_rms_norm, rms_norm, rms_norm_parts
from staticfire.kernels.rotary import rotary_embedding
from staticfire.kernels.silu_and_mul import silu_and_mul
from staticfire.kernels.state_copy import state_copy
from staticfire.kernels.testing import assert_close, bits_equal
from staticfire.kernels.topk_softmax import topk_softmax

pytestmark = [pytest.mark.engine, pytest.mark.interp]

make = cases.Maker(3, torch.float32)
axes = pytest.mark.parametrize("axis", [0, 1])


@axes
def test_norms(tmp_path, axis):
    x, residual, weight = make(3, 5), make(3, 5), make(1, 5)[0]
    far_x, far_residual = far(tmp_path, "x", x, axis), far(tmp_path, "residual", residual, axis)
    far_weight = far(tmp_path, "weight", weight)
    out = rms_norm(far_x, far_weight, 1e-6, backend="triton")
    assert_close("rms_norm", out, rms_norm(x, weight, 1e-6, backend="reference"))
    normed, total = fused_add_rms_norm(far_x, far_residual, far_weight, 1e-6, backend="triton")
    expected, expected_total = fused_add_rms_norm(x, residual, weight, 1e-6, backend="reference")
    assert_close("fused_add_rms_norm", normed, expected)
    assert bits_equal(total, expected_total)
    parts = rms_norm_parts(far_x, far_weight, 1e-6, (2, 3), backend="triton")
    assert_close("rms_norm_parts", parts, rms_norm_parts(x, weight, 1e-6, (2, 3), backend="reference"))


@axes
def test_gate(tmp_path, axis):
    x = make(3, 6)
    out = silu_and_mul(far(tmp_path, "x", x, axis), backend="triton")
    assert_close("silu_and_mul", out, silu_and_mul(x, backend="reference"))


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_rotation(tmp_path, axis):
    q, k, cos_sin = make(3, 5, 6), make(3, 5, 6), make(4, 6)
    positions = torch.tensor([3, 1, 2], dtype=torch.int32)
    near = rotary_embedding(q, k, positions, cos_sin, backend="reference")
    far_q, far_k = far(tmp_path, "q", q, axis), far(tmp_path, "k", k, axis)
    far_table = far(tmp_path, "table", cos_sin, min(axis, 1))
    for ours, theirs in zip(rotary_embedding(far_q, far_k, positions, far_table, backend="triton"), near, strict=True):
        assert_close("rotary_embedding", ours, theirs)


@axes
def test_routing(tmp_path, axis):
    logits = make(3, 5)
    weights, ids = topk_softmax(far(tmp_path, "logits", logits, axis), 2, True, backend="triton")
    expected, expected_ids = topk_softmax(logits, 2, True, backend="reference")
    assert ids.tolist() == expected_ids.tolist()
    assert_close("topk_softmax", weights, expected)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_writes_of_far_keys_and_values(tmp_path, axis):
    key, value, slots = make(3, 3, 4), make(3, 3, 4), torch.tensor([4, 0, 9], dtype=torch.int32)
    caches = [torch.zeros(5, 2, 2, 3, 4) for _ in range(2)]
    far_key, far_value = far(tmp_path, "key", key, axis), far(tmp_path, "value", value, axis)
    reshape_and_cache(far_key, far_value, caches[0], slots, backend="triton")
    reshape_and_cache(key, value, caches[1], slots, backend="reference")
    assert bits_equal(caches[0], caches[1])


def test_writes_into_far_pages(tmp_path):
    key, value, slots = make(3, 2, 8), make(3, 2, 8), torch.tensor([5, 0, 3], dtype=torch.int32)
    near = torch.zeros(3, 2, 2, 2, 8)
    pages = far(tmp_path, "pages", near)
    reshape_and_cache(key, value, pages, slots, backend="triton")
    reshape_and_cache(key, value, near, slots, backend="reference")
    assert bits_equal(pages.contiguous(), near)


@pytest.mark.parametrize("axis", [0, 1, 2, 3])
def test_copies_of_far_states(tmp_path, axis):
    state = make(4, 3, 3, 3)
    src, dst = torch.tensor([3, 0], dtype=torch.int32), torch.tensor([1, 2], dtype=torch.int32)
    laid = far(tmp_path, "state", state, axis)
    state_copy(laid, src, dst, backend="triton")
    state_copy(state, src, dst, backend="reference")
    assert bits_equal(laid.contiguous(), state)
