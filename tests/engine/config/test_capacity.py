"""Groups, blocks and concurrency against numbers worked out by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from staticfire.engine.config import Device, resolve
from staticfire.engine.config.capacity import demand, group_size
from staticfire.engine.config.rules.examples import example_model


@pytest.mark.parametrize(
    ("attention", "recurrent", "size"),
    [(4, 28, 4), (1, 7, 1), (4, 0, 4), (0, 9, 9), (10, 30, 10), (10, 14, 14), (10, 15, 10), (5, 5, 5), (3, 4, 4)],
)
def test_group_size(attention, recurrent, size):
    assert group_size(attention, recurrent) == size


def test_jamba_mini_has_eight_groups():
    """4 attention + 28 recurrent layers: groups of 4, one of attention and seven of states."""
    need = demand(
        attention_layers=4,
        recurrent_layers=28,
        max_model_len=8000,
        block_size=80,
        mamba_block_size=80,
        mode="align",
        page_size_bytes=327680,
    )
    assert need.num_groups == 8
    assert need.block_bytes == 4 * 327680
    assert need.blocks == 100 + 7 * 2


@pytest.mark.parametrize(
    ("mode", "spec", "states"),
    [("none", 0, 1), ("none", 2, 3), ("align", 0, 2), ("align", 1, 3), ("all", 0, 50), ("all", 2, 52)],
)
def test_states_of_one_request(mode, spec, states):
    need = demand(
        attention_layers=1,
        recurrent_layers=1,
        max_model_len=4000,
        block_size=80,
        mamba_block_size=80,
        mode=mode,
        page_size_bytes=1,
        num_speculative_tokens=spec,
    )
    assert need.recurrent_blocks == states
    assert need.attention_blocks == 50


def test_a_pool_of_exactly_one_request_is_enough():
    """Llama, 512 tokens in blocks of 16: 32 blocks and the null block."""
    llama = example_model("llama")
    exact = resolve({"num_gpu_blocks_override": 33, "max_model_len": 512}, llama)
    assert exact.accepted
    assert exact.runtime is not None
    assert exact.runtime.kv_cache_max_concurrency == 1.0
    assert exact.runtime.kv_cache_size_tokens == 512
    short = resolve({"num_gpu_blocks_override": 32, "max_model_len": 512}, llama)
    assert [v.code for v in short.violations] == ["SF105"]
    assert "needs 32 blocks of 16 tokens, but the pool has 31" in short.violations[0].message


@given(blocks=st.integers(2, 400), length=st.integers(1, 2048))
def test_longer_contexts_never_fit_more_often(blocks, length):
    jamba = example_model("jamba")
    now = resolve({"num_gpu_blocks_override": blocks, "max_model_len": length}, jamba).runtime
    shorter = resolve({"num_gpu_blocks_override": blocks, "max_model_len": max(1, length // 2)}, jamba).runtime
    assert now is not None
    assert shorter is not None
    assert shorter.kv_cache_max_concurrency >= now.kv_cache_max_concurrency


def test_a_pool_larger_than_the_device_is_refused_where_it_was_asked_for():
    llama = example_model("llama")
    huge = resolve({"block_size": 16 * 2**40}, llama)
    assert [v.code for v in huge.violations] == ["SF109"]
    assert "24.0 GiB" in huge.violations[0].message
    assert [v.code for v in resolve({"kv_cache_memory_bytes": 2**50}, llama).violations] == ["SF109"]


def test_a_default_pool_larger_than_the_device_is_noted():
    thimble = Device("thimble", "cpu", 2**16)
    resolution = resolve({}, example_model("llama"), thimble)
    assert resolution.accepted
    assert any("is more than thimble's 64.0 KiB" in note for note in resolution.notes)
