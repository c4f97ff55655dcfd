from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import kernel_cases as cases
from staticfire.kernels.paged_attention import make_metadata, paged_attention
from staticfire.kernels.testing import assert_close, bits_equal, poisoned

pytestmark = pytest.mark.engine

SIZE = 8


def attend(q, rest, scale, **options) -> torch.Tensor:
    cache, tables, cu, lengths = rest
    return paged_attention(q, cache, tables, cu, lengths, scale, **options)


def batch(make, sequences, heads, block_size, padding=0):
    """Queries, a poisoned cache that holds just the sequences' keys and values, and the tables that find them."""
    query_heads, key_heads = heads
    covered = [-(-length // block_size) for _, length in sequences]
    order = torch.randperm(sum(covered) + 2, generator=make.generator).tolist()
    page = (2 * block_size + padding) * key_heads * SIZE
    buffer = poisoned((len(order) + 1) * page, dtype=make.dtype)
    strides = (page, block_size * key_heads * SIZE, key_heads * SIZE, SIZE, 1)
    cache = buffer.as_strided((len(order), 2, block_size, key_heads, SIZE), strides)
    tables = torch.zeros(len(sequences), max([*covered, 1]), dtype=torch.int32)
    lines = []
    for b, (_, length) in enumerate(sequences):
        line = make(length, 2, key_heads, SIZE)
        for p in range(length):
            if p % block_size == 0:
                tables[b, p // block_size] = order.pop()
            cache[int(tables[b, p // block_size]), :, p % block_size] = line[p]
        lines.append(line)
    q = make(sum(n for n, _ in sequences), query_heads, SIZE)
    cu = torch.tensor([0, *(n for n, _ in sequences)]).cumsum(0)
    return q, cache, tables, cu, torch.tensor([n for _, n in sequences]), lines


sequence = st.tuples(st.integers(0, 6), st.integers(0, 12)).map(lambda s: (s[0], s[0] + s[1]))
decode = st.integers(1, 12).map(lambda n: (1, n))
batches = st.one_of(st.lists(sequence, max_size=4), st.lists(decode, max_size=4))


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


@pytest.mark.parametrize("backend", ["torch", "reference"])
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


@pytest.mark.parametrize("backend", ["torch", "reference"])
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


def test_twice_is_bitwise_the_same():
    make = cases.Maker(5, torch.float32)
    q, *rest = batch(make, [(9, 30), (1, 9), (1, 40), (12, 12)], (4, 2), 16)[:-1]
    assert bits_equal(attend(q, rest, 0.3), attend(q, rest, 0.3))
