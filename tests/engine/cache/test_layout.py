from dataclasses import replace

import pytest

from staticfire.engine.cache.layout import plan_cache
from staticfire.engine.cache.spec import AttentionSpec, MambaSpec
from toy_engine.factories import toy_config


def test_attention_first_then_states_in_groups_of_the_smaller_bucket():
    layout = plan_cache(toy_config(pattern="MMMMAMMM" * 4))
    assert [len(group.layers) for group in layout.groups] == [4] * 8
    assert layout.groups[0].layers == (4, 12, 20, 28)
    assert layout.groups[1].layers == (0, 1, 2, 3)
    assert isinstance(layout.groups[0].spec, AttentionSpec)
    assert all(isinstance(group.spec, MambaSpec) for group in layout.groups[1:])
    assert layout.num_tensors == 4


@pytest.mark.parametrize(
    ("attention", "recurrent", "sizes"),
    [
        (4, 28, [4] * 8),
        (3, 29, [3] * 10 + [2]),
        (10, 14, [10, 14]),  # 14 < 1.5 * 10: one padded group rather than two
        (10, 15, [10, 10, 5]),
        (2, 3, [2, 2, 1]),  # 3 is not less than 1.5 * 2
        (4, 3, [4, 3]),
        (32, 0, [32]),
    ],
)
def test_group_sizes(attention, recurrent, sizes):
    layout = plan_cache(toy_config(pattern="M" * recurrent + "A" * attention))
    assert [len(group.layers) for group in layout.groups] == sizes
    assert [layer for group in layout.groups[1:] + layout.groups[:1] for layer in group.layers] == sorted(
        layer for group in layout.groups for layer in group.layers
    )
    assert layout.num_tensors == max(sizes)


def test_shorter_last_group_is_padding():
    layout = plan_cache(toy_config(pattern="MMMAA"))
    assert [group.layers for group in layout.groups] == [(3, 4), (0, 1), (2,)]
    assert layout.num_tensors == 2


def test_pages_are_equal_and_blocks_come_from_the_runtime():
    config = toy_config(pattern="MA", num_blocks=77)
    layout = plan_cache(config)
    assert layout.num_blocks == 77
    assert {group.spec.page_size_bytes for group in layout.groups} == {config.runtime.page_size_bytes}
    assert layout.page_size_bytes == config.runtime.page_size_bytes


@pytest.mark.parametrize(("mode", "block"), [("align", 16), ("none", 256)])
def test_a_state_block_spans_a_block_or_the_whole_request(mode, block):
    spec = plan_cache(toy_config(mode=mode, block_size=16, max_len=256)).groups[1].spec
    assert isinstance(spec, MambaSpec)
    assert (spec.block_size, spec.mode) == (block, mode)
    assert spec.shapes == ((8, 3), (8, 4))


@pytest.mark.parametrize(
    ("conv", "ssm", "expected"),
    [
        ("auto", "auto", ("float32", "float32")),
        ("float16", "auto", ("float16", "float16")),
        ("auto", "float64", ("float32", "float64")),
        ("bfloat16", "float32", ("bfloat16", "float32")),
    ],
)
def test_state_dtypes_follow_the_model_unless_named(conv, ssm, expected):
    config = toy_config()
    cache = replace(config.cache, mamba_cache_dtype=conv, mamba_ssm_cache_dtype=ssm)
    spec = plan_cache(replace(config, cache=cache)).groups[1].spec
    assert isinstance(spec, MambaSpec)
    assert spec.dtypes == expected


def test_pure_models_have_groups_of_one_kind():
    assert [group.layers for group in plan_cache(toy_config(pattern="AAA")).groups] == [(0, 1, 2)]
    only_states = plan_cache(toy_config(pattern="MM")).groups
    assert [group.layers for group in only_states] == [(0, 1)]
    assert isinstance(only_states[0].spec, MambaSpec)


@pytest.mark.parametrize(
    ("runtime", "message"),
    [
        ({"page_size_bytes": 500}, "an attention block of 512 bytes does not fit a page of 500"),
        ({"state_bytes": 600}, "a state of 600 bytes does not fit a page of 512"),
    ],
)
def test_a_page_must_hold_its_content(runtime, message):
    config = toy_config(block_size=16)
    with pytest.raises(ValueError, match=message):
        plan_cache(replace(config, runtime=replace(config.runtime, **runtime)))


def test_recurrent_layers_need_state_shapes():
    config = toy_config()
    info = replace(config.model.info, state_shapes=None)
    with pytest.raises(ValueError, match="toy: recurrent layers of unknown state shapes"):
        plan_cache(replace(config, model=replace(config.model, info=info)))


def test_mode_all_is_not_ours():
    with pytest.raises(ValueError, match="modes none and align"):
        plan_cache(toy_config(mode="all"))


def test_key_value_heads_are_per_rank_and_at_least_one():
    config = toy_config()
    for ranks, heads in ((1, 2), (2, 1), (4, 1)):
        parallel = replace(config.parallel, tensor_parallel_size=ranks)
        spec = plan_cache(replace(config, parallel=parallel)).groups[0].spec
        assert isinstance(spec, AttentionSpec)
        assert spec.num_kv_heads == heads
