from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import kernel_cases as cases
from attention_cases import batch, batches
from staticfire.kernels.paged_attention import make_metadata, paged_attention
from staticfire.kernels.reshape_and_cache import reshape_and_cache
from staticfire.kernels.testing import assert_close, bits_equal, poisoned

pytestmark = pytest.mark.engine

SIZE = 8
BACKENDS = ["torch", "reference", pytest.param("triton", marks=pytest.mark.interp)]


def attend(q, rest, scale, **options) -> torch.Tensor:
    cache, tables, cu, lengths = rest
    return paged_attention(q, cache, tables, cu, lengths, scale, **options)


@cases.examples
@given(
    cases.makers(),
    batches,
    st.sampled_from([(1, 1), (4, 2), (4, 4), (6, 1)]),
    st.sampled_from([1, 4, 16]),
    st.integers(0, 1),
    st.booleans(),
)
def test_quick_path_agrees_with_reference(make, sequences, heads, block_size, padding, shared):
    q, *rest = batch(make, sequences, heads, block_size, padding)[:-1]
    metadata = make_metadata(rest[0], rest[1], rest[2], rest[3], q.dtype) if shared else None
    quick = attend(q, rest, 0.3, metadata=metadata)
    assert_close("paged_attention", quick, attend(q, rest, 0.3, backend="reference"))
    assert bool(quick.isfinite().all())


@pytest.mark.parametrize("backend", BACKENDS)
def test_float64_equals_dense_attention_in_long_double(backend):
    make = cases.Maker(41, torch.float64)
    sequences = [(5, 5), (1, 9), (3, 20), (1, 1)]
    q, cache, tables, cu, lengths, lines = batch(make, sequences, (4, 2), 4)
    out = paged_attention(q, cache, tables, cu, lengths, SIZE**-0.5, backend=backend)
    for b, (queries, length) in enumerate(sequences):
        keys, values = (lines[b][:, i].numpy().astype(np.longdouble) for i in range(2))
        for i in range(queries):
            seen = length - queries + i + 1
            for head in range(4):
                query = q[int(cu[b]) + i, head].numpy().astype(np.longdouble)
                scores = keys[:seen, head // 2] @ query / np.sqrt(np.longdouble(SIZE))
                weights = np.exp(scores - scores.max())
                expected = weights @ values[:seen, head // 2] / weights.sum()
                np.testing.assert_allclose(out[int(cu[b]) + i, head].numpy(), expected, rtol=0, atol=1e-14)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("heads", [(4, 4), (4, 2)])
def test_agrees_with_transformers(backend, heads):
    from types import SimpleNamespace

    from transformers.models.jamba.modeling_jamba import eager_attention_forward

    make = cases.Maker(42, torch.float32)
    q, cache, tables, cu, lengths, lines = batch(make, [(7, 7)], heads, 4)
    keys, values = (lines[0][:, i].transpose(0, 1)[None] for i in range(2))
    mask = torch.full((7, 7), -torch.inf).triu(1)[None, None]
    module = SimpleNamespace(num_key_value_groups=heads[0] // heads[1], training=False)
    theirs, _ = eager_attention_forward(module, q.transpose(0, 1)[None], keys, values, mask, 0.35)
    ours = paged_attention(q, cache, tables, cu, lengths, 0.35, backend=backend)
    assert_close("paged_attention", ours, theirs[0])


@cases.examples
@given(cases.seeds, st.lists(st.integers(0, 15), max_size=4), st.sampled_from([1, 4, 16]))
def test_cutting_a_prompt_changes_nothing(seed, cuts, block_size):
    make = cases.Maker(seed, torch.float64)
    q, cache, tables, _, _, _ = batch(make, [(15, 15)], (4, 2), block_size)
    whole = paged_attention(q, cache, tables, torch.tensor([0, 15]), torch.tensor([15]), 0.3)
    edges = [0, *sorted(cuts), 15]
    for begin, end in pairwise(edges):
        part = paged_attention(q[begin:end], cache, tables, torch.tensor([0, end - begin]), torch.tensor([end]), 0.3)
        assert_close("paged_attention", part, whole[begin:end])


@cases.examples
@given(
    cases.makers(),
    batches,
    st.sampled_from([torch.float8_e4m3fn, torch.float8_e5m2]),
    st.sampled_from([(1.0, 1.0), (0.75, 2.5)]),
)
def test_quick_path_agrees_with_reference_on_8_bit_caches(make, sequences, cache_dtype, scales):
    q, *rest = batch(make, sequences, (4, 2), 4, cache_dtype=cache_dtype)[:-1]
    options = {"k_scale": scales[0], "v_scale": scales[1]}
    quick = attend(q, rest, 0.3, **options)
    assert_close("paged_attention", quick, attend(q, rest, 0.3, **options, backend="reference"))
    assert bool(quick.isfinite().all())


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("cache_dtype", [torch.float8_e4m3fn, torch.float8_e5m2])
def test_an_8_bit_cache_is_one_of_its_values_times_the_scales(backend, cache_dtype):
    make = cases.Maker(43, torch.float64)
    q, cache, *rest, _ = batch(make, [(3, 9), (1, 5), (5, 5)], (4, 2), 4, cache_dtype=cache_dtype)
    wide = torch.empty_strided(cache.shape, cache.stride(), dtype=torch.float64).copy_(cache.double())
    wide[:, 0] *= 0.75
    wide[:, 1] *= 2.5
    out = attend(q, (cache, *rest), 0.3, k_scale=0.75, v_scale=2.5, backend=backend)
    assert_close("paged_attention", out, attend(q, (wide, *rest), 0.3, backend="reference"))


@pytest.mark.parametrize("scales", [(0.0, 1.0), (1.0, -1.0), (torch.nan, 1.0), (1.0, torch.inf), (1e-60, 1.0)])
def test_a_scale_that_is_none_is_refused(scales):
    q, *rest = batch(cases.Maker(5, torch.float32), [(1, 1)], (2, 2), 4, cache_dtype=torch.float8_e5m2)[:-1]
    with pytest.raises(ValueError, match="k_scale and v_scale are positive and finite"):
        attend(q, rest, 1.0, k_scale=scales[0], v_scale=scales[1])


def test_a_scale_without_8_bit_cache_is_refused():
    q, *rest = batch(cases.Maker(5, torch.float32), [(1, 1)], (2, 2), 4)[:-1]
    with pytest.raises(ValueError, match=r"belong to a cache of 8-bit floats; got 2.0 and 1.0 with torch.float32"):
        attend(q, rest, 1.0, k_scale=2.0)


def test_large_scores_do_not_overflow():
    make = cases.Maker(5, torch.float32)
    q, *rest = batch(make, [(3, 9), (1, 9)], (2, 2), 4)[:-1]
    quick = attend(q, rest, 1e4)
    assert_close("paged_attention", quick, attend(q, rest, 1e4, backend="reference"))


def test_sequences_that_do_not_fit_are_refused():
    make = cases.Maker(5, torch.float32)
    q, cache, tables, cu, _, _ = batch(make, [(3, 3)], (2, 2), 4)
    with pytest.raises(ValueError, match="sequence 0 has 3 queries and 2 positions"):
        paged_attention(q, cache, tables, cu, torch.tensor([2]), 1.0)
    with pytest.raises(ValueError, match="3 queries and 5 positions, and its block table covers 4"):
        paged_attention(q, cache, tables, cu, torch.tensor([5]), 1.0)


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_stride_of_an_only_head_or_position_means_nothing(backend):
    # A cache that is laid out heads first, on a rank that holds one head; and one of one position a block.
    make = cases.Maker(5, torch.float32)
    for block_size, strides in ((4, (64, 32, 8, 32, 1)), (1, (16, 8, 3, 5, 1))):
        q, cache, tables, cu, lengths, _ = batch(make, [(1, 3), (2, 5)], (2, 1), block_size)
        laid = poisoned(64 * len(cache)).as_strided(cache.shape, strides).copy_(cache)
        expected = paged_attention(q, cache, tables, cu, lengths, 0.3, backend="reference")
        out = paged_attention(q, laid, tables, cu, lengths, 0.3, backend=backend)
        assert_close("paged_attention", out, expected)
        pair, slots, before = make(2, 1, 8), torch.tensor([5, 2]), laid.clone()
        reshape_and_cache(pair, -pair, laid, slots, backend=backend)
        reshape_and_cache(pair, -pair, before, slots, backend="reference")
        assert bits_equal(laid, before)


@pytest.mark.parametrize("backend", ["torch", pytest.param("triton", marks=pytest.mark.interp)])
def test_queries_of_no_sequence_are_refused(backend):
    q, cache, tables, cu, lengths, _ = batch(cases.Maker(5, torch.float32), [(1, 3), (2, 5)], (2, 1), 4)
    with pytest.raises(ValueError, match="q has as many rows as its sequences, 3; got 4"):
        paged_attention(torch.cat((q, q[:1])), cache, tables, cu, lengths, 0.3, backend=backend)


def test_twice_is_bitwise_the_same():
    make = cases.Maker(5, torch.float32)
    q, *rest = batch(make, [(9, 30), (1, 9), (1, 40), (12, 12)], (4, 2), 16)[:-1]
    assert bits_equal(attend(q, rest, 0.3), attend(q, rest, 0.3))
