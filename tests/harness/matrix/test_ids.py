"""Cell ids."""

import pytest

from staticfire.harness.matrix.ids import cell_id, label


def test_an_id_reads_aloud():
    axes = {
        "max_num_batched_tokens": 128,
        "block_size": 32,
        "enable_prefix_caching": True,
        "mamba_cache_mode": "align",
        "quantization": "experts_int8",
        "dtype": "float32",
        "model": "jamba-tiny",
        "enable_chunked_prefill": "unset",
    }
    assert cell_id(axes) == "jamba-tiny-fp32-int8-align-apc-b32-t128"
    assert cell_id(dict(reversed(axes.items()))) == cell_id(axes)


@pytest.mark.parametrize(
    ("axis", "value", "text"),
    [
        ("enable_prefix_caching", False, "noapc"),
        ("enable_chunked_prefill", True, "chunked"),
        ("enable_chunked_prefill", False, "unchunked"),
        ("mamba_cache_mode", "none", "nostates"),
        ("dtype", "bfloat16", "bf16"),
        ("kv_cache_dtype", "fp8_e4m3", "kv-fp8-e4m3"),
        ("tensor_parallel_size", 4, "tp4"),
        ("quantization", "fp8", "fp8"),
        ("model", "Qwen/Qwen3.5-27B", "qwen-qwen3.5-27b"),
        ("enforce_eager", True, "enforce-eager"),
        ("enforce_eager", False, "no-enforce-eager"),
        ("long_prefill_token_threshold", 8, "cut8"),
        ("scheduling_policy", "priority", "prio"),
        ("max_num_partial_prefills", 8, "max-num-partial-prefills-8"),
        ("dtype", "unset", ""),
    ],
)
def test_labels(axis, value, text):
    assert label(axis, value) == text


def test_axes_without_names_of_their_own_follow_by_name():
    assert cell_id({"zeta": 1, "model": "m", "alpha": 2}) == "m-alpha-2-zeta-1"
