import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import kernel_cases as cases
from attention_cases import batch, batches
from memory_layouts import far
from staticfire.kernels.paged_attention import make_metadata, paged_attention
from staticfire.kernels.paged_attention import triton as launcher
from staticfire.kernels.paged_attention.tiles import Launch, Tiles, choose
from staticfire.kernels.parity import assert_repeatable
from staticfire.kernels.testing import assert_close, bits_equal

pytestmark = [pytest.mark.engine, pytest.mark.interp]

FP8 = st.sampled_from([torch.float8_e4m3fn, torch.float8_e5m2])


def compare(arguments, scale=0.3, **options):
    q, cache, tables, cu, lengths = arguments
    before = q.clone(), cache.clone()

    def run(backend):
        return paged_attention(q, cache, tables, cu, lengths, scale, **options, backend=backend)

    (out,) = assert_repeatable(lambda: [run("triton")])
    assert_close("paged_attention", out, run("reference"))
    assert bool(out.isfinite().all())
    assert bits_equal(q, before[0])
    assert bits_equal(cache, before[1])


@cases.examples
@given(
    cases.makers(),
    batches,
    st.sampled_from([(1, 1), (4, 2), (6, 2), (17, 1)]),
    st.sampled_from([1, 4, 5, 16]),
    st.integers(0, 1),
    st.sampled_from([1, 8, 20]),
)
def test_attention(make, sequences, heads, block_size, padding, size):
    compare(batch(make, sequences, heads, block_size, padding, size=size)[:-1])


@cases.examples
@given(cases.makers(), batches, FP8, st.sampled_from([(1.0, 1.0), (0.7, 1.3)]))
def test_attention_to_an_8_bit_cache(make, sequences, cache_dtype, scales):
    arguments = batch(make, sequences, (4, 2), 4, cache_dtype=cache_dtype)[:-1]
    compare(arguments, k_scale=scales[0], v_scale=scales[1])


@pytest.mark.parametrize(
    "sequences",
    [
        [(33, 33)],
        [(16, 32), (1, 17), (17, 49)],
        [(0, 0), (1, 48), (0, 20), (0, 0)],
        [(1, 1), (1, 16), (1, 17), (1, 33), (1, 80)],
    ],
    ids=str,
)
@pytest.mark.parametrize("block_size", [80, 7])
def test_lengths_around_the_edges_of_tiles_and_blocks(sequences, block_size):
    compare(batch(cases.Maker(7, torch.float32), sequences, (4, 2), block_size)[:-1])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(
    ("tiles", "sequences"),
    [
        (Tiles(128, 64, 1, 8, 3), [(70, 150), (1, 131), (0, 3), (66, 66)]),
        (Tiles(16, 64, 4, 4, 3), [(1, 300), (1, 64), (1, 1), (1, 65)]),
    ],
    ids=["prefill", "decode"],
)
def test_the_tiles_of_a_gpu(monkeypatch, dtype, tiles, sequences):
    monkeypatch.setattr(launcher, "choose", lambda launch: tiles)
    compare(batch(cases.Maker(8, dtype), sequences, (2, 1), 80, size=16)[:-1])


def test_shares_and_sizes_that_are_no_power_of_two(monkeypatch):
    monkeypatch.setattr(launcher, "choose", lambda launch: Tiles(16, 16, 3, 4, 1))
    compare(batch(cases.Maker(8, torch.float32), [(1, 40), (1, 1)], (2, 1), 7, size=5)[:-1])


def test_the_pages_of_a_sequence_without_queries_are_not_looked_up():
    q, cache, tables, cu, lengths, _ = batch(cases.Maker(7, torch.float32), [(0, 5), (2, 5), (0, 9)], (2, 1), 4)
    expected = paged_attention(q, cache, tables, cu, lengths, 0.3, backend="reference")
    tables[::2] = 2**30
    (out,) = assert_repeatable(lambda: [paged_attention(q, cache, tables, cu, lengths, 0.3, backend="triton")])
    assert_close("paged_attention", out, expected)


def test_large_scores_do_not_overflow():
    compare(batch(cases.Maker(5, torch.float32), [(3, 9), (1, 9)], (2, 2), 4)[:-1], scale=1e4)
    compare(batch(cases.Maker(5, torch.float32), [(1, 40), (1, 9)], (2, 2), 4)[:-1], scale=1e4)


def test_pages_beyond_the_reach_of_32_bits():
    make = cases.Maker(6, torch.float32)
    q, cache, tables, cu, lengths, lines = batch(make, [(2, 7)], (2, 1), 4, cache_dtype=torch.float8_e5m2)
    stride = 2**30 + 8
    memory = np.zeros(2 * stride + 2 * 4 * 8, np.uint8)  # taken from the system as it is touched
    pool = torch.from_numpy(memory).view(torch.float8_e5m2)
    far = pool.as_strided((3, *cache.shape[1:]), (stride, *cache.stride()[1:]))
    far_tables = torch.tensor([[2, 1]], dtype=torch.int32)
    for p, row in enumerate(lines[0]):
        far[int(far_tables[0, p // 4]), :, p % 4] = row
    near = paged_attention(q, cache, tables, cu, lengths, 0.3, backend="triton")
    assert bits_equal(paged_attention(q, far, far_tables, cu, lengths, 0.3, backend="triton"), near)


def test_queries_and_tables_beyond_the_reach_of_32_bits(tmp_path):
    make = cases.Maker(6, torch.float32)
    q, cache, tables, cu, lengths, _ = batch(make, [(1, 3), (1, 9), (2, 5)], (4, 1), 4)
    near = paged_attention(q, cache, tables, cu, lengths, 0.3, backend="triton")
    for axis in range(3):
        laid = far(tmp_path, f"q{axis}", q, axis)
        assert bits_equal(paged_attention(laid, cache, tables, cu, lengths, 0.3, backend="triton"), near)
    for axis in range(2):
        laid = far(tmp_path, f"tables{axis}", tables, axis)
        assert bits_equal(paged_attention(q, cache, laid, cu, lengths, 0.3, backend="triton"), near)


def test_metadata_changes_nothing_and_is_held_to_its_layout():
    make = cases.Maker(5, torch.float32)
    q, cache, tables, cu, lengths, _ = batch(make, [(3, 9), (1, 9)], (4, 2), 4)
    metadata = make_metadata(cache, tables, cu, lengths, q.dtype)
    with_it = paged_attention(q, cache, tables, cu, lengths, 0.3, metadata=metadata, backend="triton")
    assert bits_equal(with_it, paged_attention(q, cache, tables, cu, lengths, 0.3, backend="triton"))
    other = cache.repeat_interleave(2, 2)
    with pytest.raises(ValueError, match="metadata was made for strides"):
        paged_attention(q, other, tables, cu, lengths, 0.3, metadata=metadata, backend="triton")


def test_what_the_op_refuses_is_refused():
    q, cache, tables, cu, _, _ = batch(cases.Maker(5, torch.float32), [(3, 3)], (2, 2), 4)
    with pytest.raises(ValueError, match="sequence 0 has 3 queries and 2 positions"):
        paged_attention(q, cache, tables, cu, torch.tensor([2]), 1.0, backend="triton")
    with pytest.raises(ValueError, match="dense tokens"):
        paged_attention(q[..., ::2], cache[..., ::2], tables, cu, torch.tensor([3]), 1.0, backend="triton")


@given(
    st.integers(1, 300),
    st.integers(1, 300),
    st.integers(1, 64),
    st.integers(1, 128),
    st.sampled_from([16, 64, 128, 256, 512]),
    st.sampled_from([2, 4, 8]),
    st.integers(1, 1 << 20),
    st.booleans(),
)
def test_tiles_hold_a_group_and_splits_do_not_crowd_the_device(
    tokens, sequences, key_heads, group, size, item, capacity, amd
):
    tiles = choose(Launch(tokens, sequences, key_heads, group, size, item, capacity, 132, amd))
    assert tiles.rows >= max(16, group)
    assert tiles.rows.bit_count() == tiles.positions.bit_count() == 1
    assert 1 <= tiles.splits <= 16
    if tiles.splits > 1:
        assert tokens <= sequences
        assert tiles.splits * sequences * key_heads <= 2 * 132
        assert tiles.splits * 256 <= capacity
