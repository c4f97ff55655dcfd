"""Ops that move values: every bit of the pool is compared, what lies between pages included."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import kernel_cases as cases
from staticfire.kernels.parity import assert_repeatable
from staticfire.kernels.reshape_and_cache import reshape_and_cache
from staticfire.kernels.state_copy import state_copy
from staticfire.kernels.testing import assert_untouched, bits_equal, embed, poisoned

pytestmark = [pytest.mark.engine, pytest.mark.interp]

BLOCKS, BLOCK_SIZE = 5, 4


def cache_of(heads, size, dtype, padding):
    page = (2 * BLOCK_SIZE + padding) * heads * size
    buffer = poisoned(BLOCKS * page + 5, dtype=dtype)
    strides = (page, BLOCK_SIZE * heads * size, heads * size, size, 1)
    return buffer.as_strided((BLOCKS, 2, BLOCK_SIZE, heads, size), strides, 3), buffer


@cases.examples
@given(
    cases.makers(),
    st.lists(st.integers(-1, BLOCKS * BLOCK_SIZE - 1), max_size=5, unique=True),
    st.sampled_from([(1, 1), (3, 5), (2, 8)]),
    st.integers(0, 2),
    cases.dtypes,
)
def test_writes_into_pages(make, slots, shape, padding, cache_dtype):
    key, value = make(len(slots), *shape), make(len(slots), *shape)
    mapping = torch.tensor(slots, dtype=torch.int32)

    def run(backend):
        cache, buffer = cache_of(shape[0], shape[1], cache_dtype, padding)
        reshape_and_cache(key, value, cache, mapping, backend=backend)
        return [buffer]

    (buffer,) = assert_repeatable(lambda: run("triton"))
    assert bits_equal(buffer, run("reference")[0])


@cases.examples
@given(
    cases.makers(),
    st.lists(st.integers(-1, BLOCKS * BLOCK_SIZE - 1), max_size=5, unique=True),
    st.sampled_from([torch.float8_e4m3fn, torch.float8_e5m2]),
    st.sampled_from([(1.0, 1.0), (0.013, 7.7)]),
    st.sampled_from([1e-3, 1.0, 1e4]),
)
def test_writes_into_pages_of_8_bit_floats(make, slots, cache_dtype, scales, size):
    key, value = make(len(slots), 3, 5, scale=size), make(len(slots), 3, 5, scale=size)
    mapping = torch.tensor(slots, dtype=torch.int64)

    def run(backend):
        cache, buffer = cache_of(3, 5, torch.uint8, 1)
        options = {"k_scale": scales[0], "v_scale": scales[1]}
        reshape_and_cache(key, value, cache.view(cache_dtype), mapping, **options, backend=backend)
        return [buffer]

    (buffer,) = assert_repeatable(lambda: run("triton"))
    assert bits_equal(buffer, run("reference")[0])


def test_a_cache_that_the_op_refuses_is_refused():
    unfit = torch.zeros(2, 2, 4, 1, 16)[..., :8]
    with pytest.raises(ValueError, match="dense tokens"):
        reshape_and_cache(torch.zeros(1, 1, 8), torch.zeros(1, 1, 8), unfit, torch.tensor([0]), backend="triton")


@cases.examples
@given(
    cases.makers(),
    st.lists(st.tuples(st.integers(-1, 5), st.integers(-1, 5)), max_size=5),
    st.sampled_from([(1,), (75,), (3, 5), (2, 2, 3)]),
    st.booleans(),
)
def test_states_are_copied_in_order(make, copies, inner, swap):
    start = make(6, *inner)
    src, dst = (torch.tensor([c[i] for c in copies], dtype=torch.int64) for i in range(2))

    def run(backend):
        state = embed(start, swap=swap and len(inner) > 1)
        state_copy(state.view, src, dst, backend=backend)
        state.assert_canaries()
        return [state.view]

    (state,) = assert_repeatable(lambda: run("triton"))
    assert_untouched(start, state, {d for s, d in copies if s >= 0 and d >= 0})
    assert bits_equal(state, run("reference")[0])


@pytest.mark.parametrize("dtype", [torch.int64, torch.uint8, torch.int8])
def test_words_of_any_kind_are_copied(dtype):
    state = torch.arange(12, dtype=dtype).view(3, 4)
    state_copy(state, torch.tensor([0, 1]), torch.tensor([1, 2]), backend="triton")
    assert state.tolist() == [[0, 1, 2, 3]] * 3


def test_states_of_too_many_dimensions_are_refused():
    state, one = torch.zeros(2, 1, 1, 1, 1), torch.tensor([0])
    with pytest.raises(ValueError, match="at most 3 dimensions; got 4"):
        state_copy(state, one, one, backend="triton")
