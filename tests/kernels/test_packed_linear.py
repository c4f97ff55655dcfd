"""Products over weights in oneDNN's own layout, and experts made of them."""

import numpy as np
import pytest
import torch

import kernel_cases as cases
from moe_cases import experts
from staticfire.kernels import packed_linear
from staticfire.kernels.fused_moe import fused_moe
from staticfire.kernels.fused_moe.packed import PackedExperts, can_pack_experts
from staticfire.kernels.packed_linear import PackedLinear, can_pack, is_worthwhile
from staticfire.kernels.testing import assert_close, bits_equal

pytestmark = pytest.mark.engine

SHAPES = [(256, 128), (64, 1024), (130, 257)]


def draw(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("size", SHAPES)
def test_agrees_with_numpy_in_float64(size: tuple[int, int], bias: bool):
    weight, added = draw(*size), draw(size[0], seed=2) if bias else None
    packed = PackedLinear(weight)
    for rows in (0, 1, 2, 17, 100):
        x = draw(rows, size[1], seed=1)
        wanted = x.double().numpy() @ weight.double().numpy().T + (0 if added is None else added.double().numpy())
        # Whatever the order of the sum, n terms are off by at most (n + 1) * 2**-24 times the sum of their sizes.
        sizes = x.abs().double() @ weight.abs().double().T + (0 if added is None else added.abs().double())
        bound = (size[1] + 2) * 2.0**-24 * sizes.numpy()
        assert (np.abs(packed(x, added).double().numpy() - wanted) <= bound).all()


def test_an_operand_with_gaps():
    weight, wide = draw(256, 128), draw(9, 300, seed=1)
    packed = PackedLinear(weight)
    assert bits_equal(packed(wide[:, 50:178]), packed(wide[:, 50:178].contiguous()))


@pytest.mark.parametrize("size", SHAPES)
def test_the_weight_comes_back_to_the_bit(size: tuple[int, int]):
    weight = draw(*size)
    packed = PackedLinear(weight)
    assert bits_equal(packed.dense(), weight)
    assert packed.size == weight.numel()


def test_only_what_gains_is_packed(monkeypatch: pytest.MonkeyPatch):
    assert can_pack(draw(512, 512))
    assert not can_pack(draw(64, 64))
    assert not can_pack(draw(512, 512).double())
    assert not can_pack(draw(512, 512).bfloat16())
    with monkeypatch.context() as patch:
        patch.setattr(torch.backends.mkldnn, "is_available", lambda: False)
        assert not can_pack(draw(512, 512))


def test_few_rows_of_a_small_matrix_are_not_worth_a_call():
    """By the measured figures: 25 µs a call more, 12 ps a weight and further row less."""
    assert [is_worthwhile(64 * 1024, rows) for rows in (1, 32, 33)] == [False, False, True]
    assert [is_worthwhile(64 * size, 64) for size in (192, 256, 512)] == [False, False, False]
    assert [is_worthwhile(1 << 19, rows) for rows in (1, 64)] == [True, True]


@pytest.mark.parametrize("inner", [256, 2048])
@pytest.mark.parametrize("tokens", [0, 1, 2, 40])
def test_packed_experts_agree_with_the_reference(tokens: int, inner: int):
    """The larger ones keep no plain tensors; they come back to the bit."""
    x, w13, w2, weights, ids, *_ = experts(cases.Maker(8, torch.float32), tokens, 4, 2, 256, inner)
    assert can_pack_experts(w13, w2)
    packed = PackedExperts(w13, w2)
    assert (packed._plain is None) == (inner * 256 >= packed_linear.ALWAYS)
    assert_close("fused_moe", packed(x, weights, ids), fused_moe(x, w13, w2, weights, ids, backend="reference"))
    assert all(map(bits_equal, packed.plain(), (w13, w2)))


def test_an_expert_not_chosen_cannot_influence_packed_ones():
    x, w13, w2, weights, _, *_ = experts(cases.Maker(8, torch.float32), 20, 4, 2, 256, 2048)
    ids = torch.tensor([[0, 2]]).repeat(20, 1)
    before = PackedExperts(w13, w2)(x, weights, ids)
    w13[3], w2[3] = float("nan"), float("inf")
    assert bits_equal(before, PackedExperts(w13, w2)(x, weights, ids))
