import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import kernel_cases as cases
from memory_layouts import far
from moe_cases import experts
from staticfire.kernels.fused_moe import fused_moe
from staticfire.kernels.fused_moe import triton as launcher
from staticfire.kernels.parity import assert_repeatable, poisoned_allocations
from staticfire.kernels.testing import assert_close, bits_equal
from staticfire.kernels.tiles import ProductTiles, product_tiles

pytestmark = [pytest.mark.engine, pytest.mark.interp]


def compare(arguments):
    before = [a.clone() for a in arguments if a is not None]
    (out,) = assert_repeatable(lambda: [fused_moe(*arguments, backend="triton")])
    assert_close("fused_moe", out, fused_moe(*arguments, backend="reference"))
    assert all(bits_equal(a, b) for a, b in zip(before, filter(torch.is_tensor, arguments), strict=True))


@cases.examples
@given(
    cases.makers(),
    st.sampled_from([0, 1, 5, 17]),
    st.sampled_from([(1, 1), (4, 2), (3, 3)]),
    st.sampled_from([(16, 8), (19, 17), (1, 1)]),
    st.booleans(),
    st.booleans(),
)
def test_experts(make, tokens, routing, sizes, int8, packed):
    compare(experts(make, tokens, *routing, *sizes, int8=int8, packed=packed))


@pytest.mark.parametrize("counts", [(0, 16, 0, 1), (15, 17, 0, 0), (1, 0, 33, 2), (0, 0, 0, 16)], ids=str)
@pytest.mark.parametrize("int8", [False, True])
def test_counts_around_the_edges_of_tiles(counts, int8):
    x, w13, w2, weights, _, *scales = experts(
        cases.Maker(2, torch.float32), sum(counts), len(counts), 1, 18, 5, int8=int8
    )
    chosen = torch.arange(len(counts)).repeat_interleave(torch.tensor(counts))
    ids = chosen[torch.randperm(len(chosen), generator=torch.Generator().manual_seed(1))][:, None]
    compare((x, w13, w2, weights, ids, *scales))


@pytest.mark.parametrize("tokens", [2, 40])
def test_an_expert_not_chosen_cannot_influence(tokens):
    x, w13, w2, weights, *_ = experts(cases.Maker(8, torch.float32), tokens, 4, 2, 16, 8)
    ids = torch.tensor([[0, 2]]).repeat(tokens, 1)
    before = fused_moe(x, w13, w2, weights, ids, backend="triton")
    w13[[1, 3]] = torch.nan
    w2[[1, 3]] = torch.nan
    assert bits_equal(before, fused_moe(x, w13, w2, weights, ids, backend="triton"))


@pytest.mark.parametrize("pairs", [1, 16, 40, 77])
def test_pairs_are_sorted_by_expert_and_stay_in_order_within(pairs):
    count = 5
    ids = torch.randint(0, count, (pairs,), generator=torch.Generator().manual_seed(pairs))
    with poisoned_allocations():
        order, starts = torch.empty(pairs, dtype=torch.int32), torch.empty(count + 1, dtype=torch.int32)
    launcher._sort[(count,)](ids, order, starts, pairs, count, BLOCK=16)
    assert order.tolist() == torch.argsort(ids, stable=True).tolist()
    assert starts.tolist() == [int((ids < e).sum()) for e in range(count + 1)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_tiles_of_a_gpu(monkeypatch, dtype):
    monkeypatch.setattr(launcher, "product_tiles", lambda *_, **__: ProductTiles(64, 64, 64, 4, 3))
    compare(experts(cases.Maker(4, dtype, sliced=True), 66, 2, 1, 70, 66, int8=True))


@pytest.mark.parametrize(("which", "axes"), [(0, 2), (1, 3), (2, 3)], ids=["x", "w13", "w2"])
def test_operands_beyond_the_reach_of_32_bits(tmp_path, which, axes):
    arguments = list(experts(cases.Maker(9, torch.float32), 3, 3, 1, 18, 5, int8=True))
    arguments[4] = torch.tensor([[2], [0], [2]])
    near, operand = fused_moe(*arguments, backend="triton"), arguments[which]
    for axis in range(axes):
        arguments[which] = far(tmp_path, str(axis), operand, axis)
        assert bits_equal(fused_moe(*arguments, backend="triton"), near)


@given(st.integers(0, 10**6), st.sampled_from([2, 4, 8]), st.booleans(), st.booleans())
def test_tiles_fit_the_shared_memory_of_every_device(rows, item, pair, amd):
    tiles = product_tiles(rows, item, pair=pair, amd=amd, interpreted=False)
    assert min(tiles[:3]) >= 16
    assert all(size.bit_count() == 1 for size in tiles[:4])
    under_way = tiles.num_stages - 1 if amd else tiles.num_stages
    step = (tiles.rows + tiles.columns * (2 if pair else 1)) * tiles.inner * item
    assert under_way * step <= (64 if amd else 99) * 1024
