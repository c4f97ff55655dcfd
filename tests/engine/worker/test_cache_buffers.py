"""One byte pool under many views: what each view covers, and that copying and zeroing stay where they belong."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from staticfire.engine.cache.spec import AttentionSpec, CacheGroup, CacheLayout, MambaSpec
from staticfire.engine.errors import EngineError
from staticfire.engine.scheduler.output import StateCopy
from staticfire.engine.worker.cache import CacheBuffers

pytestmark = pytest.mark.engine


def layout(
    page: int = 1024,
    *,
    blocks: int = 6,
    ssm_dtype: str = "float32",
    conv_dtype: str = "float32",
    kv_dtype: str = "float32",
    heads: int = 2,
) -> CacheLayout:
    attention = AttentionSpec(16, heads, 4, kv_dtype, page)
    mamba = MambaSpec(16, ((6, 3), (6, 8)), (conv_dtype, ssm_dtype), "align", page)
    groups = (CacheGroup((1, 4), attention), CacheGroup((0, 2), mamba), CacheGroup((3,), mamba))
    return CacheLayout(groups, num_blocks=blocks, num_tensors=2, page_size_bytes=page)


@pytest.mark.parametrize(
    ("page", "conv_dtype", "ssm_dtype", "kv_dtype"),
    [
        (1024, "float32", "float32", "float32"),
        (1152, "bfloat16", "float32", "bfloat16"),
        (1024, "bfloat16", "bfloat16", "bfloat16"),
        (2048, "float64", "float64", "float64"),
        (516, "float32", "bfloat16", "bfloat16"),
    ],
)
def test_every_view_lies_in_its_own_page(page: int, conv_dtype: str, ssm_dtype: str, kv_dtype: str):
    """Written through a view, exactly the bytes of that block's page change; its tensors do not overlap."""
    caches = CacheBuffers(layout(page, conv_dtype=conv_dtype, ssm_dtype=ssm_dtype, kv_dtype=kv_dtype))
    where = {1: (0, 0), 4: (0, 1), 0: (1, 0), 2: (1, 1), 3: (2, 0)}
    for layer, (group, buffer) in where.items():
        assert caches.group_of[layer] == group
        views = caches.states.get(layer) or (caches.attention[layer],)
        for block in range(6):
            touched = np.zeros(page, bool)
            for view in views:
                caches.pool.fill_(0xFF)
                view[block] = 0
                changed = (caches.pool == 0).numpy()
                assert changed.sum() == view[block].numel() * view.itemsize
                changed_here = changed[buffer, block].copy()
                changed[buffer, block] = False
                assert not changed.any()
                assert not (touched & changed_here).any()
                touched |= changed_here


def test_shapes_and_dtypes_are_those_of_the_layout():
    caches = CacheBuffers(layout(conv_dtype="bfloat16"))
    assert caches.attention[4].shape == (6, 2, 16, 2, 4)
    conv_state, ssm_state = caches.states[2]
    assert conv_state.shape == (6, 6, 3)
    assert conv_state.dtype is torch.bfloat16
    assert ssm_state.shape == (6, 6, 8)
    assert ssm_state.dtype is torch.float32
    assert caches.attention_groups == {0: (1, 4)}
    assert caches.recurrent_groups == {1: (0, 2), 2: (3,)}


def test_states_survive_the_neighbours():
    caches = CacheBuffers(layout())
    for layer, states in caches.states.items():
        for index, state in enumerate(states):
            state.copy_(torch.arange(state.numel()).view(state.shape) + layer * 1e4 + index * 1e5)
    # Layers 0 and 3 are both the first of their group, so they share buffer 0: the later one has the bytes.
    for layer in (2, 3):
        for index, state in enumerate(caches.states[layer]):
            wanted = torch.arange(state.numel()).view(state.shape) + layer * 1e4 + index * 1e5
            assert torch.equal(state, wanted)


@given(st.lists(st.tuples(st.integers(1, 2), st.integers(0, 5), st.integers(0, 5)), max_size=6), st.integers(0, 99))
def test_copies_have_the_outcome_of_doing_them_in_order(copies: list[tuple[int, int, int]], seed: int):
    caches = CacheBuffers(layout())
    caches.pool.copy_(torch.randint(0, 256, caches.pool.shape, generator=torch.Generator().manual_seed(seed)))
    wanted = caches.pool.clone()
    for group, source, target in copies:
        for buffer in range(len(caches.layout.groups[group].layers)):
            wanted[buffer, target] = wanted[buffer, source].clone()
    caches.copy_states([StateCopy(*copy) for copy in copies])
    assert torch.equal(caches.pool, wanted)


@pytest.mark.parametrize("page", [1024, 1028, 1030, 1031])
def test_zeroing_takes_whole_pages_and_no_others(page: int):
    caches = CacheBuffers(
        CacheLayout((CacheGroup((0,), AttentionSpec(1, 1, 1, "float32", 1024)),), 6, 1, 1024)
        if page == 1024
        else CacheLayout((), 6, 2, page)
    )
    caches.pool.fill_(0xAB)
    caches.zero([4, 1])
    zero = (caches.pool == 0).all(dim=-1)
    assert zero[:, [1, 4]].all()
    assert (caches.pool[:, [0, 2, 3, 5]] == 0xAB).all()


def test_a_pool_that_does_not_fit_is_an_engine_error():
    with pytest.raises(EngineError, match=r"no memory for a cache of \d+ bytes"):
        CacheBuffers(layout(1 << 20, blocks=1 << 40))


def test_an_unsupported_dtype_is_an_engine_error():
    with pytest.raises(EngineError, match="kv_cache_dtype: dtype 'fp8_e4m3'"):
        CacheBuffers(layout(kv_dtype="fp8_e4m3"))
