"""Block-size alignment against worked numbers (done by hand from published model dimensions) and a brute-force loop."""

from collections.abc import Mapping
from fractions import Fraction
from math import lcm
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from staticfire.engine.config import Resolution, model_info, resolve
from staticfire.engine.config.alignment import align, attention_bytes_per_token, kv_dtype_bytes, state_bytes
from staticfire.engine.config.families.states import GatedDeltaNetState, Mamba1State, Mamba2State
from staticfire.engine.config.rules.examples import MODELS, example_model

JAMBA_SMALL: Mapping[str, Any] = {
    "model_type": "jamba",
    "num_hidden_layers": 8,
    "hidden_size": 512,
    "intermediate_size": 1024,
    "num_attention_heads": 8,
    "num_key_value_heads": 8,
    "head_dim": 16,
    "mamba_d_state": 16,
    "mamba_d_conv": 4,
    "mamba_expand": 2,
    "num_experts": 4,
    "vocab_size": 1024,
    "max_position_embeddings": 8192,
    "torch_dtype": "bfloat16",
}
JAMBA_MINI = {
    **JAMBA_SMALL,
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
}
BAMBA = {
    "model_type": "bamba",
    "num_hidden_layers": 32,
    "attn_layer_indices": [9, 18, 27],
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "mamba_n_heads": 128,
    "mamba_d_head": 64,
    "mamba_n_groups": 1,
    "mamba_d_state": 128,
    "mamba_d_conv": 4,
    "mamba_expand": 2,
    "mamba_chunk_size": 256,
    "vocab_size": 128256,
    "max_position_embeddings": 4096,
    "torch_dtype": "bfloat16",
}
NEMOTRON = {
    "model_type": "nemotron_h",
    "num_hidden_layers": 12,
    "hybrid_override_pattern": "M-M-M*-M-M*-",
    "hidden_size": 4096,
    "intermediate_size": 21504,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "mamba_num_heads": 128,
    "mamba_head_dim": 64,
    "n_groups": 8,
    "ssm_state_size": 128,
    "conv_kernel": 4,
    "vocab_size": 131072,
    "max_position_embeddings": 8192,
    "torch_dtype": "bfloat16",
}
GRANITE = {
    "model_type": "granitemoehybrid",
    "num_hidden_layers": 4,
    "layer_types": ["mamba", "mamba", "mamba", "attention"],
    "hidden_size": 1536,
    "intermediate_size": 512,
    "shared_intermediate_size": 1024,
    "num_attention_heads": 12,
    "num_key_value_heads": 4,
    "num_local_experts": 64,
    "num_experts_per_tok": 6,
    "mamba_n_heads": 48,
    "mamba_d_head": 64,
    "mamba_n_groups": 1,
    "mamba_d_state": 128,
    "mamba_d_conv": 4,
    "mamba_expand": 2,
    "mamba_chunk_size": 256,
    "vocab_size": 100352,
    "max_position_embeddings": 131072,
    "torch_dtype": "bfloat16",
}
FALCON_05B = {
    "model_type": "falcon_h1",
    "num_hidden_layers": 4,
    "hidden_size": 1024,
    "intermediate_size": 2048,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "mamba_d_ssm": 1536,
    "mamba_n_heads": 24,
    "mamba_d_head": 64,
    "mamba_n_groups": 1,
    "mamba_d_state": 128,
    "mamba_d_conv": 4,
    "vocab_size": 32784,
    "max_position_embeddings": 16384,
    "torch_dtype": "bfloat16",
}
FALCON_15B = {
    **FALCON_05B,
    "hidden_size": 2048,
    "head_dim": 128,
    "mamba_d_ssm": 3072,
    "mamba_n_heads": 48,
    "mamba_d_state": 256,
}
QWEN3_NEXT = {
    "model_type": "qwen3_next",
    "num_hidden_layers": 48,
    "hidden_size": 2048,
    "intermediate_size": 5120,
    "num_attention_heads": 16,
    "num_key_value_heads": 2,
    "head_dim": 256,
    "linear_num_key_heads": 16,
    "linear_num_value_heads": 32,
    "linear_key_head_dim": 128,
    "linear_value_head_dim": 128,
    "linear_conv_kernel_dim": 4,
    "num_experts": 512,
    "num_experts_per_tok": 10,
    "moe_intermediate_size": 512,
    "shared_expert_intermediate_size": 512,
    "vocab_size": 151936,
    "max_position_embeddings": 262144,
    "torch_dtype": "bfloat16",
}
QWEN36 = {
    "model_type": "qwen3_5_moe",
    "architectures": ["Qwen3_5MoeForConditionalGeneration"],
    "text_config": {
        **QWEN3_NEXT,
        "model_type": "qwen3_5_moe_text",
        "num_hidden_layers": 40,
        "num_experts": 256,
        "mamba_ssm_dtype": "float32",
    },
}
QWEN35_DENSE = {
    "model_type": "qwen3_5",
    "text_config": {
        "model_type": "qwen3_5_text",
        "num_hidden_layers": 64,
        "hidden_size": 5120,
        "intermediate_size": 17408,
        "num_attention_heads": 24,
        "num_key_value_heads": 4,
        "head_dim": 256,
        "linear_num_key_heads": 16,
        "linear_num_value_heads": 48,
        "linear_key_head_dim": 128,
        "linear_value_head_dim": 128,
        "linear_conv_kernel_dim": 4,
        "mamba_ssm_dtype": "float32",
        "vocab_size": 248320,
        "max_position_embeddings": 262144,
        "dtype": "bfloat16",
    },
}

# (label, config.json, typed, attention bytes a token, state bytes, block size, page bytes)
ROWS = [
    ("jamba-small", JAMBA_SMALL, {}, 512, 38912, 80, 40960),
    ("jamba-small, 2 x 64", {**JAMBA_SMALL, "num_key_value_heads": 2, "head_dim": 64}, {}, 512, 38912, 80, 40960),
    ("jamba-small, 8 x 32", {**JAMBA_SMALL, "head_dim": 32}, {}, 1024, 38912, 48, 49152),
    ("jamba-small, 4 x 64", {**JAMBA_SMALL, "num_key_value_heads": 4, "head_dim": 64}, {}, 1024, 38912, 48, 49152),
    ("jamba-mini", JAMBA_MINI, {}, 4096, 311296, 80, 327680),
    ("jamba-mini tp2", JAMBA_MINI, {"tensor_parallel_size": 2}, 2048, 155648, 80, 163840),
    ("jamba-mini tp8", JAMBA_MINI, {"tensor_parallel_size": 8}, 512, 38912, 80, 40960),
    ("jamba-mini fp32 state", JAMBA_MINI, {"mamba_ssm_cache_dtype": "float32"}, 4096, 573440, 144, 589824),
    ("jamba-mini fp8 kv", JAMBA_MINI, {"kv_cache_dtype": "fp8"}, 2048, 311296, 160, 327680),
    ("jamba-mini none", JAMBA_MINI, {"enable_prefix_caching": False}, 4096, 311296, 80, 327680),
    ("bamba", BAMBA, {}, 4096, 2147840, 528, 2162688),
    ("nemotron", NEMOTRON, {}, 4096, 4255744, 1040, 4259840),
    ("nemotron bf16 state", NEMOTRON, {"mamba_ssm_cache_dtype": "bfloat16"}, 4096, 2158592, 528, 2162688),
    ("granite", GRANITE, {}, 2048, 806400, 400, 819200),
    ("falcon 0.5b", FALCON_05B, {}, 512, 403968, 800, 409600),
    ("falcon 1.5b", FALCON_15B, {}, 1024, 1594368, 1568, 1605632),
    ("qwen3-next", QWEN3_NEXT, {}, 2048, 1097728, 544, 1114112),
    ("qwen3-next tp2", QWEN3_NEXT, {"tensor_parallel_size": 2}, 1024, 548864, 544, 557056),
    ("qwen3-next tp4", QWEN3_NEXT, {"tensor_parallel_size": 4}, 1024, 274432, 272, 278528),
    ("qwen3-next tp8", QWEN3_NEXT, {"tensor_parallel_size": 8}, 1024, 137216, 144, 147456),
    ("qwen3.6", QWEN36, {}, 2048, 2146304, 1056, 2162688),
    ("qwen3.6 tp4", QWEN36, {"tensor_parallel_size": 4}, 1024, 536576, 528, 540672),
    ("qwen3.6 fp8 kv", QWEN36, {"kv_cache_dtype": "fp8"}, 1024, 2146304, 2096, 2146304),
    ("qwen3.6 block 128", QWEN36, {"block_size": 128}, 2048, 2146304, 1152, 2359296),
    ("qwen3.6 block 256", QWEN36, {"block_size": 256}, 2048, 2146304, 1280, 2621440),
    ("qwen3.5 dense", QWEN35_DENSE, {}, 4096, 3207168, 784, 3211264),
]


@pytest.mark.parametrize(
    ("hf", "typed", "attention", "state", "block", "page"), [r[1:] for r in ROWS], ids=[r[0] for r in ROWS]
)
def test_worked_numbers(hf, typed, attention, state, block, page):
    resolution = resolve(typed, model_info(hf, "model"))
    runtime = resolution.runtime
    assert runtime is not None
    assert resolution.accepted, resolution.violations
    assert (runtime.attention_bytes_per_token, runtime.state_bytes) == (attention, state)
    assert (runtime.block_size, runtime.page_size_bytes) == (block, page)
    assert runtime.mamba_page_size_padded == (None if page == state else page)
    caching = typed.get("enable_prefix_caching", True)
    assert runtime.mamba_block_size == (block if caching else resolution.values["model.max_model_len"].value)


def test_the_arithmetic_is_shown_in_numbers():
    text = "\n".join(resolve({}, model_info(QWEN36, "qwen")).arithmetic)
    for number in ("2048 B", "2146304 B", "1048.0", "16 -> 1056", "1056 x 2048 = 2162688 B", "0.76%"):
        assert number in text


MODE_ALL = [
    ("jamba-mini", JAMBA_MINI, 2048, 8388608),
    ("bamba", BAMBA, 768, 3145728),
    ("granite", GRANITE, 512, 1048576),
]


@pytest.mark.parametrize(("hf", "block", "page"), [r[1:] for r in MODE_ALL], ids=[r[0] for r in MODE_ALL])
def test_mode_all_grows_in_scan_chunks_and_is_refused(hf, block, page):
    resolution = resolve({"mamba_cache_mode": "all"}, model_info(hf, "model"))
    assert [v.code for v in resolution.violations] == ["SF502"]
    assert resolution.runtime is not None
    assert (resolution.runtime.block_size, resolution.runtime.page_size_bytes) == (block, page)
    assert resolution.runtime.mamba_block_size == block


DELTA_NET = GatedDeltaNetState(16, 32, 128, 128, 4)
SPECULATIVE = [
    ("nemotron, 3 tokens", Mamba2State(8192, 8, 128, 64, 128, 4), "float32", 4096, 3, 1056, 4325376),
    ("qwen3-next, 2 tokens", DELTA_NET, "bfloat16", 2048, 2, 560, 1146880),
    ("qwen3.6, 1 token", DELTA_NET, "float32", 2048, 1, 1056, 2162688),
    ("qwen3.6, 3 tokens", DELTA_NET, "float32", 2048, 3, 1072, 2195456),
]


@pytest.mark.parametrize(
    ("state", "ssm", "attention", "spec", "block", "page"),
    [r[1:] for r in SPECULATIVE],
    ids=[r[0] for r in SPECULATIVE],
)
def test_speculative_slots_widen_the_state(state, ssm, attention, spec, block, page):
    size = state_bytes(state(1, spec), "bfloat16", ssm)
    aligned = align(attention_bytes=attention, state_bytes=size, block_size=16, mode="align", mamba_block_size=16)
    assert (aligned.block_size, aligned.page_size_bytes) == (block, page)
    assert aligned.padded in {None, page}


def test_mamba1_keeps_its_convolution_state_whatever_is_speculated():
    state = Mamba1State(8192, 16, 4)
    assert state(1, 3) == state(1, 0)


def test_a_wider_kernel_block_is_a_wider_step():
    aligned = align(
        attention_bytes=2048,
        state_bytes=2146304,
        block_size=16,
        mode="align",
        mamba_block_size=16,
        kernel_block_size=64,
    )
    assert (aligned.block_size, aligned.page_size_bytes) == (1088, 2228224)


def test_a_large_typed_block_is_kept():
    runtime = resolve({"block_size": 4096}, model_info(QWEN36, "qwen")).runtime
    assert runtime is not None
    assert runtime.block_size == 4096


def test_a_small_state_changes_nothing():
    """LFM2-like: 4 tokens cover the state, so the block stays and the state is padded three times over."""
    aligned = align(attention_bytes=2048, state_bytes=8192, block_size=16, mode="align", mamba_block_size=16)
    assert (aligned.block_size, aligned.page_size_bytes, aligned.padded) == (16, 32768, 32768)


def test_models_of_one_kind_are_not_aligned():
    attention_only = align(attention_bytes=512, state_bytes=0, block_size=32, mode="none", mamba_block_size=None)
    assert (attention_only.block_size, attention_only.page_size_bytes) == (32, 16384)
    assert attention_only.mamba_block_size is None
    state_only = align(attention_bytes=0, state_bytes=999, block_size=16, mode="none", mamba_block_size=2048)
    assert (state_only.block_size, state_only.mamba_block_size, state_only.page_size_bytes) == (16, 2048, 999)


def covering_block(attention: int, state: int, step: int, kernel: int) -> int:
    """Walk up block by block, with no formula."""
    tokens = step
    while tokens * attention < state or tokens % step or tokens % kernel:
        tokens += 1
    return tokens


@given(
    attention=st.integers(1, 64).map(lambda n: 32 * n),
    state=st.integers(1, 200_000),
    block=st.integers(1, 6).map(lambda n: 16 * n),
)
def test_the_block_is_the_smallest_multiple_that_covers_the_state(attention, state, block):
    aligned = align(
        attention_bytes=attention, state_bytes=state, block_size=block, mode="align", mamba_block_size=block
    )
    assert aligned.block_size == covering_block(attention, state, block, 16)
    assert aligned.page_size_bytes == aligned.block_size * attention >= state
    assert aligned.padded == (aligned.page_size_bytes if aligned.page_size_bytes != state else None)
    again = align(
        attention_bytes=attention,
        state_bytes=state,
        block_size=aligned.block_size,
        mode="align",
        mamba_block_size=aligned.mamba_block_size,
    )
    assert again.block_size == aligned.block_size


@given(
    attention=st.integers(1, 64).map(lambda n: 32 * n),
    state=st.integers(1, 200_000),
    chunk=st.sampled_from([8, 24, 64, 256, 2048]),
)
def test_mode_all_is_the_smallest_multiple_of_chunk_and_kernel(attention, state, chunk):
    aligned = align(
        attention_bytes=attention,
        state_bytes=state,
        block_size=16,
        mode="all",
        mamba_block_size=None,
        chunk_size=chunk,
    )
    step = lcm(chunk, 16)
    assert aligned.block_size % step == 0
    assert aligned.block_size * attention >= state
    assert (aligned.block_size - step) * attention < state


def jamba_state(hf: Mapping[str, Any], ranks: int, conv: int, ssm: int) -> tuple[Fraction, Fraction]:
    """State and attention bytes from the keys of config.json, with none of our code."""
    inner = Fraction(hf["mamba_expand"] * hf["hidden_size"], ranks)
    state = inner * (hf["mamba_d_conv"] - 1) * conv + inner * hf["mamba_d_state"] * ssm
    heads = max(Fraction(1), Fraction(hf["num_key_value_heads"], ranks))
    return state, 2 * heads * hf["head_dim"] * conv


@given(
    d_state=st.sampled_from([4, 8, 16, 32, 64]),
    kv_heads=st.sampled_from([1, 2, 4, 8]),
    head_dim=st.sampled_from([16, 32, 64]),
    ssm=st.sampled_from(["bfloat16", "float32"]),
    ranks=st.sampled_from([1, 2, 4, 8]),
)
def test_editing_a_jamba_config_moves_the_answer_as_the_formula_says(d_state, kv_heads, head_dim, ssm, ranks):
    hf = {**JAMBA_SMALL, "mamba_d_state": d_state, "num_key_value_heads": kv_heads, "head_dim": head_dim}
    typed = {"mamba_ssm_cache_dtype": ssm, "tensor_parallel_size": ranks}
    runtime = resolve(typed, model_info(hf, "edited")).runtime
    assert runtime is not None
    state, attention = jamba_state(hf, ranks, 2, 4 if ssm == "float32" else 2)
    assert (runtime.state_bytes, runtime.attention_bytes_per_token) == (int(state), int(attention))
    assert runtime.block_size == covering_block(int(attention), int(state), 16, 16)


def test_ranks_beyond_kv_heads_stop_shrinking_attention():
    assert [attention_bytes_per_token(2, 256, ranks, 2) for ranks in (1, 2, 4, 8)] == [2048, 1024, 1024, 1024]


def test_one_group_is_copied_to_every_rank():
    """With G groups each rank keeps (I + 2 G' N) / TP channels, where G' = TP for a single group."""
    state = Mamba2State(8192, 1, 128, 64, 128, 4)
    assert state(4, 0)[0].shape == ((8192 + 2 * 4 * 128) // 4, 3)
    assert Mamba2State(8192, 8, 128, 64, 128, 4)(4, 0)[0].shape == ((8192 + 2 * 8 * 128) // 4, 3)


def test_bytes_of_cache_formats():
    sizes = {name: kv_dtype_bytes(name) for name in ("float64", "float32", "bfloat16", "float16", "fp8", "fp8_e5m2")}
    assert sizes == {"float64": 8, "float32": 4, "bfloat16": 2, "float16": 2, "fp8": 1, "fp8_e5m2": 1}


def test_resolution_of_a_refused_layout_has_no_run_time_values():
    resolution: Resolution = resolve({"tensor_parallel_size": 3}, model_info(QWEN3_NEXT, "qwen"))
    assert not resolution.accepted
    assert resolution.runtime is None
    assert resolution.arithmetic == ()


@pytest.mark.parametrize("name", [name for name in MODELS if example_model(name).is_hybrid])
@pytest.mark.parametrize("spec", [0, 1, 2, 3])
@pytest.mark.parametrize("ranks", [1, 2])
def test_padding_covers_the_state_however_many_tokens_are_speculated(name, spec, ranks):
    model = example_model(name)
    assert model.state_shapes is not None
    size = state_bytes(model.state_shapes(ranks, spec), "bfloat16", "float32")
    attention = attention_bytes_per_token(model.num_kv_heads, model.head_dim, ranks, 2)
    aligned = align(attention_bytes=attention, state_bytes=size, block_size=16, mode="align", mamba_block_size=16)
    assert aligned.page_size_bytes >= size
    assert aligned.page_size_bytes == aligned.block_size * attention


def test_ranks_for_mamba2_are_judged_by_heads_and_groups_alone():
    """Every small grid point: allowed iff ranks divide the heads, and divide the groups or there is one group."""
    for heads in range(1, 13):
        for groups in (g for g in range(1, heads + 1) if heads % g == 0):
            sizes = {"mamba_n_heads": heads, "mamba_d_head": 8, "mamba_d_ssm": 8 * heads, "mamba_n_groups": groups}
            attention = {"num_attention_heads": 60, "num_key_value_heads": 60, "head_dim": 2}
            hf = {**MODELS["bamba"], **attention, **sizes, "intermediate_size": 60}
            model = model_info(hf, "grid")
            for ranks in (1, 2, 3, 4, 5, 6):
                codes = {v.code for v in resolve({"tensor_parallel_size": ranks}, model).violations}
                expected = set()
                if heads % ranks:
                    expected.add("SF304")
                if groups % ranks and groups != 1:
                    expected.add("SF305")
                assert codes == expected, (heads, groups, ranks)
