"""Block sizes by release and device; expected values worked out by hand from the models' dimensions.

qwen3.6-35b-a3b: a state of 8192 x 3 x 2 + 32 x 128 x 128 x 4 = 2,146,304 B over 2,048 B a token is 1,048 tokens.
qwen3-next-80b-a3b: 8192 x 3 x 2 + 32 x 128 x 128 x 2 = 1,097,728 B over 2,048 is 536. qwen3.5-dense: 10240 x 3 x 2 +
48 x 128 x 128 x 4 = 3,207,168 B over 4,096 is 783. The next multiple of 16, of 64 or of 128 is the block.
"""

import pytest

from staticfire.engine.config import model_info, resolve
from staticfire.engine.config.acceptance import accept
from staticfire.engine.config.reader import CONTEXTS
from staticfire.engine.config.release import RELEASES
from staticfire.engine.worker.settle import settle_worker
from staticfire.harness.models import catalog, devices

QWEN = "qwen3.6-35b-a3b"


def resolved(model, release, device, **typed):
    return resolve(typed, model_info(catalog.load(model).config, model), devices.find(device), RELEASES[release])


def block(model, release, device, **typed):
    return resolved(model, release, device, tensor_parallel_size=typed.pop("tp", 1), **typed).runtime.block_size


def spec(tokens, **more):
    return {"speculative_config": {"method": "ngram", "num_speculative_tokens": tokens, **more}}


@pytest.mark.parametrize(
    ("model", "usual", "hopper", "blackwell"),
    [(QWEN, 1056, 1088, 1152), ("qwen3-next-80b-a3b", 544, 576, 640), ("qwen3.5-dense", 784, 832, 896)],
)
def test_a_gated_delta_model_has_the_blocks_of_the_release_and_the_device(model, usual, hopper, blackwell):
    sizes = {
        (release, device): block(model, release, device, num_gpu_blocks_override=64, max_model_len=4096)
        for release in RELEASES
        for device in ("a100-80gb", "h100-80gb", "h200-141gb", "b200", "l4", "mi300x")
    }
    newest = {"h100-80gb": hopper, "h200-141gb": hopper, "b200": blackwell}
    for (release, device), size in sizes.items():
        assert size == (newest.get(device, usual) if release == "vllm==0.33.0" else usual), (release, device)


@pytest.mark.parametrize(
    ("model", "size"), [("jamba-1.5-mini", 80), ("falcon-h1-0.5b", 800), ("granite-4.0-h-tiny", 400)]
)
def test_other_families_have_the_same_blocks_on_every_gpu(model, size):
    typed = {"num_gpu_blocks_override": 64, "max_model_len": 2048, "tp": 1}
    found = {block(model, release, device, **typed) for release in RELEASES for device in ("h100-80gb", "b200")}
    assert found == {size}


@pytest.mark.parametrize(
    ("typed", "device", "size"),
    [
        ({"enable_prefix_caching": False}, "h100-80gb", 1056),  # no state is exported
        ({"gdn_prefill_backend": "triton"}, "h100-80gb", 1056),
        ({"additional_config": {"gdn_prefill_backend": "triton"}}, "h100-80gb", 1056),
        ({"enable_prefix_caching": False}, "b200", 1152),  # the page of 128 tokens remains
        ({"kv_cache_dtype": "fp8"}, "b200", 2112),  # 2096 tokens of 1,024 B; quantized keys leave that page alone
        ({"block_size": 16}, "b200", 1088),  # so does a typed size that is no multiple of it
        ({"block_size": 256}, "b200", 1280),
        ({"dtype": "float16"}, "b200", 1152),
        ({"attention_backend": "FLASHINFER"}, "b200", 1088),
        ({"attention_config": {"backend": "TRITON_ATTN"}}, "b200", 1088),
        ({"attention_backend": "FLASH_ATTN"}, "b200", 1152),
    ],
)
def test_what_is_typed_moves_the_blocks_of_0_33(typed, device, size):
    assert block(QWEN, "vllm==0.33.0", device, **typed) == size


@pytest.mark.parametrize(
    ("release", "typed", "size"),
    [
        ("vllm==0.33.0", {}, 1152),  # a block has 128 tokens before it is aligned
        ("vllm==0.28.0", {}, 1152),
        ("vllm==0.33.0", {"block_size": 48}, 1056),  # 22 x 48, a multiple of 32
        ("vllm==0.33.0", {"block_size": 80}, 1120),  # 14 x 80
        ("vllm==0.33.0", {"block_size": 176, "tp": 2}, 1056),  # 6 x 176
        ("vllm==0.28.0", {"block_size": 48}, 1056),
        ("reference", {}, 1056),
    ],
)
def test_a_cpu_has_blocks_of_its_own(release, typed, size):
    assert block(QWEN, release, "cpu", **{"max_model_len": 4096, **typed}) == size


@pytest.mark.parametrize(
    ("model", "release", "tokens", "size"),
    [
        (QWEN, "vllm==0.28.0", 2, 1072),  # 8192 x 5 x 2 + 2,097,152 = 2,179,072 B: 1,064 tokens
        (QWEN, "vllm==0.33.0", 2, 1088),
        ("falcon-h1-0.5b", "vllm==0.33.0", 3, 816),  # 1792 x 6 x 2 + 393,216 = 414,720 B over 512: 810
        ("falcon-h1-0.5b", "vllm==0.28.0", 3, 800),  # this release sizes it as without
        ("jamba-1.5-mini", "vllm==0.33.0", 3, 80),  # a Mamba-1 state has no room for guessed tokens
        ("nemotron-h-8b", "vllm==0.28.0", 3, 1056),  # 10240 x 6 x 2 + 4,194,304 = 4,317,184 B over 4,096: 1,054
    ],
)
def test_speculative_tokens_lengthen_the_convolution_state(model, release, tokens, size):
    # Whether the release takes it is not known, and that moves nothing of what is shown.
    found = resolved(model, release, "h200-141gb", **spec(tokens))
    assert found.runtime.block_size == size
    assert [limit.code for limit in found.limits] == ["SF501"]


@pytest.mark.parametrize(
    "typed",
    [
        {"speculative_config": {"method": "ngram", "num_speculative_tokens": 2}},
        {"speculative_config": '{"method": "ngram", "num-speculative-tokens": 2}'},
        {"speculative_config": {"method": "ngram", "num_speculative_tokens": "2"}},
        {"spec_method": "ngram", "spec_tokens": 2},
    ],
    ids=str,
)
def test_the_number_of_tokens_is_read_from_every_spelling(typed):
    assert resolved(QWEN, "vllm==0.28.0", "h100-80gb", **typed).runtime.block_size == 1072


@pytest.mark.parametrize("config", ["not JSON", {"method": "ngram"}, {"method": "ngram", "num_speculative_tokens": -1}])
def test_no_run_time_value_is_told_where_the_number_of_tokens_is_not(config):
    found = resolved(QWEN, "vllm==0.28.0", "h100-80gb", speculative_config=config)
    assert found.runtime is None
    assert "speculative tokens" in found.unknown["block_size"]
    assert found.arithmetic == ()


def test_the_layers_of_a_draft_model_leave_the_pool_unknown_and_the_pages_known():
    found = resolved(QWEN, "vllm==0.28.0", "h100-80gb", **spec(2, method="mtp"))
    assert found.runtime.block_size == 1072
    assert {"num_gpu_blocks", "num_groups", "kv_cache_max_concurrency"} <= set(found.unknown)
    assert "page_size_bytes" not in found.unknown
    assert not any("pool" in line for line in (*found.arithmetic, *found.notes))


@pytest.mark.parametrize(
    ("name", "value"),
    [("hf_overrides", {"head_dim": 64}), ("use_replayssm", True), ("decode_context_parallel_size", 2)],
)
def test_what_changes_pages_in_a_way_that_is_not_computed_leaves_them_unknown(name, value):
    found = resolved(QWEN, "vllm==0.33.0", "h100-80gb", **{name: value})
    assert found.runtime is None
    assert name in found.unknown["block_size"]


@pytest.mark.parametrize(
    ("release", "caching", "mode"),
    [("vllm==0.27.1", False, "none"), ("vllm==0.28.0", True, "align"), ("vllm==0.33.0", True, "align")],
)
def test_defaults_of_caching_follow_the_release(release, caching, mode):
    values = resolved("jamba-1.5-mini", release, "h100-80gb").values
    assert values["cache.enable_prefix_caching"].value is caching
    assert values["cache.mamba_cache_mode"].value == mode


@pytest.mark.parametrize(
    ("model", "release", "typed", "mode"),
    [
        ("jamba-1.5-mini", "vllm==0.27.1", None, "all"),
        (QWEN, "vllm==0.27.1", None, "align"),  # its kernel stores no state at every block
        ("jamba-1.5-mini", "vllm==0.28.0", "all", "all"),
        (QWEN, "vllm==0.28.0", "all", "align"),
        ("jamba-1.5-mini", "vllm==0.33.0", "all", "align"),  # the keyword is ignored
    ],
)
def test_mode_all_is_what_the_release_makes_of_it(model, release, typed, mode):
    found = resolved(model, release, "h100-80gb", enable_prefix_caching=True, mamba_cache_mode=typed)
    assert found.values["cache.mamba_cache_mode"].value == mode
    if release == "vllm==0.33.0":
        assert any(
            "ignores it" in note for note in resolved(model, release, "h200-141gb", mamba_cache_mode=typed).notes
        )


@pytest.mark.parametrize(
    ("release", "device", "dtype"),
    [("vllm==0.33.0", "h100-80gb", "bfloat16"), ("reference", "cpu", "float32"), ("reference", "h100-80gb", "float32")],
)
def test_a_checkpoint_in_float32_is_narrowed_by_vllm_alone(release, device, dtype):
    assert resolved("jamba-tiny", release, device).values["model.dtype"].value == dtype


@pytest.mark.parametrize("model", ["jamba-tiny-grow", "falcon-h1-0.5b", "qwen3.5-dense"])
@pytest.mark.parametrize("device", ["cpu", "h100-80gb", "b200"])
def test_the_worker_settles_what_is_resolved_for_the_reference_engine(model, device):
    typed = {"num_gpu_blocks_override": 64, "max_model_len": 1024}
    info, target = model_info(catalog.load(model).config, model), devices.find(device)
    assert settle_worker(accept(typed, info, target)).runtime == resolve(typed, info, target).runtime


@pytest.mark.engine
def test_contexts_are_those_of_the_configuration_classes():
    from transformers import CONFIG_MAPPING

    classes = {"qwen3_5": "qwen3_5_text", "qwen3_5_moe": "qwen3_5_moe_text"}
    for model_type, context in CONTEXTS.items():
        assert CONFIG_MAPPING[classes.get(model_type, model_type)]().max_position_embeddings == context


# What follows are the answers of the installed releases (`VllmProbe`, device cpu, a processor with AVX-512 BF16).
@pytest.mark.parametrize(
    ("release", "block", "refused"),
    [
        ("vllm==0.28.0", 24, True),  # "No common block size for 24."
        ("vllm==0.28.0", 48, False),
        ("vllm==0.33.0", 48, True),  # CPU_ATTN: [MultipleOf(32)]
        ("vllm==0.33.0", 16, True),
        ("vllm==0.33.0", 64, False),
    ],
)
def test_a_cpu_refuses_a_dense_models_blocks_by_its_own_kernel(release, block, refused):
    found = resolved("llama-3.1-8b", release, "cpu", block_size=block)
    assert ("SF104" in {violation.code for violation in found.violations}) == refused


@pytest.mark.parametrize(("release", "size"), [("vllm==0.28.0", 800), ("vllm==0.33.0", 1568)])
def test_a_cpu_takes_any_block_of_a_hybrid_as_a_step(release, size):
    wide = {"mamba_ssm_cache_dtype": "float32"} if release == "vllm==0.33.0" else {}
    found = resolved("falcon-h1-0.5b", release, "cpu", block_size=10, **wide)
    assert found.verdict == "accepted"
    assert found.runtime.block_size == size


def test_a_value_that_the_processor_decides_is_not_known():
    state, size = "cache.mamba_ssm_cache_dtype", "block_size"
    for model in ("falcon-h1-0.5b", "qwen3-next-80b-a3b"):  # 1664 and 1152 with AVX-512 BF16, 896 and 640 without
        assert {state, size} <= set(resolved(model, "vllm==0.33.0", "cpu").unknown)
        assert not {state, size} & set(resolved(model, "vllm==0.28.0", "cpu").unknown)
        assert not {state, size} & set(resolved(model, "vllm==0.33.0", "h100-80gb").unknown)
    dense = resolved(
        "llama-3.1-8b", "vllm==0.33.0", "cpu", mamba_ssm_cache_dtype="bfloat16", kv_cache_memory_bytes=2**30
    )
    assert set(dense.unknown) == {state}  # no layer of it has a state: nothing else depends on it
    assert [violation.code for violation in dense.violations] == ["SF105"]
    kept = resolved("qwen3-next-80b-a3b", "vllm==0.33.0", "cpu", mamba_ssm_cache_dtype="bfloat16")
    assert kept.runtime.block_size == 640
    assert state not in kept.unknown


def test_the_pool_of_a_cpu_is_not_known_where_the_machine_decides():
    pool = "cache.kv_cache_memory_bytes"
    assert pool in resolved("llama-3.1-8b", "vllm==0.33.0", "cpu", gpu_memory_utilization=0.01).unknown
    assert pool not in resolved("llama-3.1-8b", "vllm==0.33.0", "cpu", kv_cache_memory_bytes=2**34).unknown
    assert resolved("llama-3.1-8b", "reference", "cpu").unknown == {}


def test_the_front_end_of_a_cpu_settles_the_block_where_the_release_does():
    found = resolved("falcon-h1-0.5b", "vllm==0.28.0", "cpu").values
    assert (found["cache.block_size"].value, found["cache.mamba_block_size"].value) == (128, 16)
    assert resolved("falcon-h1-0.5b", "vllm==0.33.0", "cpu").values["cache.block_size"].value == 16
