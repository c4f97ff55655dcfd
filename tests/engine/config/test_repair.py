"""Repairs: smallest, verified, and several changes as one."""

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from staticfire.engine.config import CPU, ConfigError, Device, repairs, resolve
from staticfire.engine.config.repair import apply
from staticfire.engine.config.resolution import Fix
from staticfire.engine.config.rules.examples import example_model

JAMBA, LLAMA = example_model("jamba"), example_model("llama")


def changes(fix):
    return {**fix.set, **dict.fromkeys(fix.drop)}


def test_the_founding_fault_has_two_repairs():
    typed = {"quantization": "experts_int8", "enable_chunked_prefill": False}
    assert [changes(fix) for fix in repairs(typed, JAMBA)] == [
        {"enable_prefix_caching": False},
        {"enable_chunked_prefill": True},
    ]


def test_an_accepted_configuration_needs_none():
    assert repairs({}, JAMBA) == ()


def test_several_faults_are_one_repair():
    typed = {
        "enable_chunked_prefill": False,
        "quantization": "fp8",
        "tensor_parallel_size": 16,
        "enable_lora": True,
        "max_model_len": 99_999,
    }
    fixes = repairs(typed, JAMBA)
    assert fixes
    for fix in fixes:
        assert set(changes(fix)) >= {"quantization", "tensor_parallel_size", "enable_lora", "max_model_len"}
        assert resolve(apply(typed, fix), JAMBA).accepted


def test_a_repair_that_breaks_another_rule_goes_on():
    """Turning caching off frees chunked prefill, but then the typed state block is refused: two changes."""
    typed = {"enable_chunked_prefill": False, "enable_prefix_caching": True, "mamba_block_size": 64}
    best = repairs(typed, JAMBA)[0]
    assert changes(best) == {"enable_chunked_prefill": True}
    stuck = {**typed, "long_prefill_token_threshold": 8}
    assert changes(repairs(stuck, JAMBA)[0]) == {"enable_chunked_prefill": True}


def test_what_was_typed_is_kept_before_it_is_changed_or_dropped():
    fixes = repairs({"mamba_block_size": 64, "enable_prefix_caching": False}, JAMBA)
    assert [changes(fix) for fix in fixes] == [{"enable_prefix_caching": True}, {"mamba_block_size": None}]


def test_what_no_keyword_repairs_has_no_repair():
    assert repairs({}, example_model("llama-fp8")) == ()


def test_more_ranks_where_the_weights_do_not_fit():
    device = Device("small", "cuda", 900_000, (9, 0))
    [fix, *_] = repairs({}, JAMBA, device)
    assert changes(fix) == {"tensor_parallel_size": 2}


def test_field_errors_are_not_repaired():
    with pytest.raises(ConfigError):
        repairs({"blok_size": 1}, JAMBA)


def test_apply_sets_and_drops():
    assert apply({"a": 1, "b": 2}, Fix(set={"c": 3}, drop=("a",))) == {"b": 2, "c": 3}


FAULTS = {
    "enable_chunked_prefill": st.just(False),
    "enable_prefix_caching": st.booleans(),
    "mamba_block_size": st.sampled_from([8, 12, 64]),
    "block_size": st.sampled_from([16, 24, 48]),
    "quantization": st.sampled_from(["experts_int8", "fp8"]),
    "max_num_batched_tokens": st.sampled_from([4, 64, 4096]),
    "max_num_seqs": st.sampled_from([1, 8, 128]),
    "max_model_len": st.sampled_from([64, 2048, 9999]),
    "long_prefill_token_threshold": st.sampled_from([0, 32, 5000]),
    "tensor_parallel_size": st.sampled_from([1, 3, 8, 16]),
    "kv_cache_dtype": st.sampled_from(["fp8", "float16", "nvfp4"]),
    "num_gpu_blocks_override": st.sampled_from([2, 40, 4000]),
    "enable_lora": st.booleans(),
}


@settings(deadline=None, max_examples=60)
@given(typed=st.fixed_dictionaries({}, optional=FAULTS), name=st.sampled_from(["jamba", "llama", "bamba", "mamba"]))
def test_every_repair_is_accepted_and_no_part_of_it_is_enough(typed, name):
    model = example_model(name)
    fixes = repairs(typed, model, CPU)
    if resolve(typed, model).accepted:
        assert fixes == ()
        return
    assert fixes, "everything typed here can be dropped, so there is a repair"
    for fix in fixes:
        assert resolve(apply(typed, fix), model).accepted
        whole = changes(fix)
        for size in range(len(whole)):
            for names in combinations(whole, size):
                part = {**typed, **{name_: whole[name_] for name_ in names}}
                assert not resolve(part, model).accepted
