import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import kernel_cases as cases
from staticfire.kernels.reshape_and_cache import make_metadata, reshape_and_cache
from staticfire.kernels.testing import assert_untouched, bits_equal, poisoned

pytestmark = pytest.mark.engine

BACKENDS = ["torch", "reference", pytest.param("triton", marks=pytest.mark.interp)]


def pages(blocks, block_size, heads, size, dtype, padding):
    """A poisoned cache layer inside larger pages; `padding` is in rows of heads * size elements."""
    page = (2 * block_size + padding) * heads * size
    buffer = poisoned(blocks * page + 5, dtype=dtype)
    strides = (page, block_size * heads * size, heads * size, size, 1)
    return buffer.as_strided((blocks, 2, block_size, heads, size), strides, 3), buffer


@cases.examples
@given(
    cases.makers(),
    st.lists(st.integers(-1, 5 * 4 - 1), max_size=8, unique=True),
    st.sampled_from([(1, 2), (2, 8)]),
    st.integers(0, 2),
    st.booleans(),
)
def test_quick_path_agrees_with_reference(make, slots, shape, padding, shared):
    heads, size = shape
    key, value = make(len(slots), heads, size), make(len(slots), heads, size)
    mapping, buffers = torch.tensor(slots, dtype=torch.int64), []
    for backend in ("torch", "reference"):
        cache, buffer = pages(5, 4, heads, size, make.dtype, padding)
        before = cache.clone()
        metadata = make_metadata(mapping, cache) if shared else None
        reshape_and_cache(key, value, cache, mapping, metadata=metadata, backend=backend)
        assert_untouched(before, cache, {s // 4 for s in slots if s >= 0})
        buffers.append(buffer)
    assert bits_equal(buffers[0], buffers[1])


@pytest.mark.parametrize("backend", BACKENDS)
def test_every_token_lies_where_its_slot_says(backend):
    make = cases.Maker(3, torch.float32)
    key, value = make(3, 2, 4), make(3, 2, 4)
    cache, _ = pages(3, 4, 2, 4, torch.float32, 1)
    reshape_and_cache(key, value, cache, torch.tensor([9, -1, 0]), backend=backend)
    assert torch.equal(cache[2, 0, 1], key[0])
    assert torch.equal(cache[2, 1, 1], value[0])
    assert torch.equal(cache[0, 0, 0], key[2])
    assert torch.equal(cache[0, 1, 0], value[2])
    assert int(cache.isnan().logical_not().sum()) == 4 * 8


@pytest.mark.parametrize("backend", BACKENDS)
def test_values_are_rounded_to_the_cache(backend):
    key = torch.tensor([[[1.00390625, 3.0]]])
    cache = torch.zeros(1, 2, 1, 1, 2, dtype=torch.bfloat16)
    reshape_and_cache(key, key, cache, torch.tensor([0]), backend=backend)
    assert cache[0, 0, 0, 0].tolist() == [1.0, 3.0]  # halfway between 1 and 1.0078125: to even


@cases.examples
@given(
    cases.makers(),
    st.lists(st.integers(-1, 5 * 4 - 1), max_size=8, unique=True),
    st.sampled_from([torch.float8_e4m3fn, torch.float8_e5m2]),
    st.sampled_from([(1.0, 1.0), (0.013, 7.7)]),
)
def test_quick_path_agrees_with_reference_on_8_bit_caches(make, slots, dtype, scales):
    key, value = make(len(slots), 2, 4, scale=100.0), make(len(slots), 2, 4, scale=100.0)
    mapping, buffers = torch.tensor(slots, dtype=torch.int64), []
    for backend in ("torch", "reference"):
        cache, buffer = pages(5, 4, 2, 4, torch.uint8, 1)
        options = {"k_scale": scales[0], "v_scale": scales[1]}
        reshape_and_cache(key, value, cache.view(dtype), mapping, **options, backend=backend)
        buffers.append(buffer)
    assert bits_equal(buffers[0], buffers[1])


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("dtype", "largest"), [(torch.float8_e4m3fn, 448.0), (torch.float8_e5m2, 57344.0)])
def test_8_bit_floats_are_scaled_rounded_to_even_and_limited(backend, dtype, largest):
    key = torch.tensor([[[0.5625, 1e30, -torch.inf, torch.nan]]])  # 1.125 lies between 1 and 1.25
    value = torch.tensor([[[0.0, -8.5, 34.0, 6.0]]])
    cache = torch.zeros(1, 2, 1, 1, 4, dtype=torch.uint8).view(dtype)
    reshape_and_cache(key, value, cache, torch.tensor([0]), k_scale=0.5, v_scale=2.0, backend=backend)
    keys, values = cache[0, 0, 0, 0].float().tolist(), cache[0, 1, 0, 0].float().tolist()
    assert keys[:3] == [1.125 if dtype is torch.float8_e4m3fn else 1.0, largest, -largest]
    assert keys[3] != keys[3]
    assert values == [0.0, -4.0, 16.0, 3.0]  # 4.25 and 17 lie halfway, or nearer, to these


def test_unfit_layouts_are_refused():
    with pytest.raises(ValueError, match=r"dense tokens .* got shape \[2, 2, 4, 1, 8\]"):
        make_metadata(torch.tensor([0]), torch.zeros(2, 2, 4, 1, 16)[..., :8])
    with pytest.raises(ValueError, match="multiple of Hk"):
        make_metadata(torch.tensor([0]), torch.zeros(100).as_strided((2, 2, 2, 1, 4), (17, 8, 4, 4, 1)))
    cache, _ = pages(3, 4, 2, 4, torch.float32, 0)
    other, _ = pages(3, 4, 2, 4, torch.float32, 1)
    metadata = make_metadata(torch.tensor([0]), other)
    with pytest.raises(ValueError, match="metadata was made for strides"):
        reshape_and_cache(torch.zeros(1, 2, 4), torch.zeros(1, 2, 4), cache, torch.tensor([0]), metadata=metadata)
