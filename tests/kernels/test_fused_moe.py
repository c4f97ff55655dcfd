import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import kernel_cases as cases
from moe_cases import experts
from staticfire.kernels.fused_moe import fused_moe, pack_experts
from staticfire.kernels.fused_moe import torch as quick
from staticfire.kernels.testing import assert_close, bits_equal

pytestmark = pytest.mark.engine

BACKENDS = ["torch", "reference", pytest.param("triton", marks=pytest.mark.interp)]


@cases.examples
@given(
    cases.makers(),
    st.sampled_from([0, 1, 5, 150]),
    st.sampled_from([(1, 1), (4, 2), (4, 4), (20, 2)]),
    st.sampled_from([(16, 8), (8, 1)]),
    st.booleans(),
    st.booleans(),
)
def test_quick_path_agrees_with_reference(make, tokens, routing, sizes, int8, packed):
    arguments = experts(make, tokens, *routing, *sizes, int8=int8, packed=packed)
    assert_close("fused_moe", fused_moe(*arguments), fused_moe(*arguments, backend="reference"))


def by_expert(x, w13, w2, weights, ids, s13=None, s2=None):
    return quick.sorted_by_expert(x, quick.PlainExperts(w13, w2, s13, s2), weights, ids)


@pytest.mark.parametrize("path", [quick.dense, by_expert])
@pytest.mark.parametrize("int8", [False, True])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("packed", [False, True])
def test_both_ways_agree_with_reference_at_every_size(path, int8, dtype, packed):
    for tokens in (0, 1, 2, 40):
        arguments = experts(cases.Maker(tokens, dtype), tokens, 4, 2, 16, 8, int8=int8, packed=packed)
        assert_close("fused_moe", path(*arguments), fused_moe(*arguments, backend="reference"))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("int8", [False, True])
@pytest.mark.parametrize("tokens", [3, 200])
def test_float64_equals_long_double_with_dequantized_weights(backend, int8, tokens):
    arguments = experts(cases.Maker(3, torch.float64), tokens, 4, 2, 6, 5, int8=int8)
    out = fused_moe(*arguments, backend=backend)
    x, w13, w2, weights, ids = (a.numpy() for a in arguments[:5])
    w13, w2 = w13.astype(np.longdouble), w2.astype(np.longdouble)
    if int8:
        s13, s2 = (a.numpy() for a in arguments[5:])
        w13, w2 = w13 * s13[..., None].astype(np.longdouble), w2 * s2[..., None].astype(np.longdouble)
    for t in range(tokens):
        expected = np.zeros(6, dtype=np.longdouble)
        for weight, e in zip(weights[t], ids[t], strict=True):
            up = w13[e] @ x[t].astype(np.longdouble)
            expected += weight * (w2[e] @ (up[:5] / (1 + np.exp(-up[:5])) * up[5:]))
        np.testing.assert_allclose(out[t].numpy(), expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("tokens", [9, 200])
def test_agrees_with_transformers(backend, tokens):
    from types import SimpleNamespace

    from transformers.models.jamba.modeling_jamba import JambaExperts

    config = SimpleNamespace(
        num_local_experts=4, hidden_size=16, intermediate_size=8, hidden_act="silu", _experts_implementation="eager"
    )
    module = JambaExperts(config).requires_grad_(requires_grad=False)
    x, w13, w2, weights, ids, *_ = experts(cases.Maker(8, torch.float32), tokens, 4, 2, 16, 8)
    module.gate_up_proj.copy_(w13)
    module.down_proj.copy_(w2)
    assert_close("fused_moe", fused_moe(x, w13, w2, weights, ids, backend=backend), module(x, ids, weights))


@pytest.mark.parametrize("backend", BACKENDS)
def test_sums_of_integers_beyond_float16_are_scaled_in_time(backend):
    x, w13, w2, weights, ids, s13, s2 = experts(cases.Maker(8, torch.float16), 3, 4, 2, 64, 8, int8=True)
    x, s13 = x * 400, s13 / 50
    products = torch.einsum("th,eih->tei", x.double(), w13.double())
    assert float(products.abs().max()) > torch.finfo(torch.float16).max
    out = fused_moe(x, w13, w2, weights, ids, s13, s2, backend=backend)
    wide = fused_moe(x.double(), w13, w2, weights.double(), ids, s13, s2, backend="reference")
    assert bool((wide.abs() < torch.finfo(torch.float16).max).all())
    assert_close("fused_moe", out, wide.half())


@pytest.mark.parametrize("tokens", [2, 200])
def test_an_expert_not_chosen_cannot_influence(tokens):
    x, w13, w2, weights, _, *_ = experts(cases.Maker(8, torch.float16), tokens, 4, 2, 16, 8)
    ids = torch.tensor([[0, 2]]).repeat(tokens, 1)
    before = fused_moe(x, w13, w2, weights, ids)
    w13[3] = 60000.0
    w2[3] = 60000.0
    after = fused_moe(x, w13, w2, weights, ids)
    assert bits_equal(before, after)


def test_packing_moves_memory_only():
    _, w13, w2, *_ = experts(cases.Maker(8, torch.float32), 0, 4, 2, 16, 8)
    packed13, packed2 = pack_experts(w13, w2)
    assert bits_equal(packed13, w13)
    assert bits_equal(packed2, w2)
    assert packed13.permute(2, 0, 1).is_contiguous()
    assert packed2.transpose(1, 2).is_contiguous()


def test_one_scale_alone_is_refused():
    x, w13, w2, weights, ids, s13, _ = experts(cases.Maker(8, torch.float32), 2, 4, 2, 16, 8, int8=True)
    with pytest.raises(ValueError, match="together or not at all"):
        fused_moe(x, w13, w2, weights, ids, s13, None)


@pytest.mark.parametrize("tokens", [16, 200])
@pytest.mark.parametrize("int8", [False, True])
def test_twice_is_bitwise_the_same(tokens, int8):
    arguments = experts(cases.Maker(8, torch.float32), tokens, 4, 2, 64, 128, int8=int8)
    assert bits_equal(fused_moe(*arguments), fused_moe(*arguments))
