"""Defaults, provenance, chains and rewrites of single configurations."""

import pickle

import pytest

from staticfire.engine.config import Device, accept, model_info, resolve
from staticfire.engine.config.errors import ConfigError
from staticfire.engine.config.release import REFERENCE, VLLM_RELEASES
from staticfire.engine.config.rules.examples import DEVICES, MODELS, example_model
from staticfire.engine.worker.settle import settle_worker

JAMBA, LLAMA, MAMBA = example_model("jamba"), example_model("llama"), example_model("mamba")
H100 = Device("h100", "cuda", 80 * 2**30, (9, 0))
A100 = Device("a100", "cuda", 80 * 2**30, (8, 0))
B200 = Device("b200", "cuda", 179 * 2**30, (10, 0))
L4 = Device("l4", "cuda", 22 * 2**30, (8, 9))


def value(resolution, field):
    return resolution.values[field].value


def test_nothing_typed_on_a_hybrid():
    resolution = resolve({}, JAMBA)
    assert resolution.accepted
    assert value(resolution, "cache.enable_prefix_caching") is True
    assert value(resolution, "scheduler.enable_chunked_prefill") is True
    mode = resolution.values["cache.mamba_cache_mode"]
    assert (mode.value, mode.source) == ("align", "derived")
    assert mode.because == "the model is hybrid and prefix caching is on"
    assert mode.parents == ("model.is_hybrid", "cache.enable_prefix_caching")
    assert resolution.rewrites == ()


def test_the_founding_fault_is_told_as_a_chain():
    violation = resolve({"enable_chunked_prefill": False}, JAMBA).violations[0]
    assert violation.chain == (
        "is_hybrid=True: derived, because config.json has 1 attention and 3 mamba1 layers",
        "enable_prefix_caching=True: default",
        "mamba_cache_mode=align: derived, because the model is hybrid and prefix caching is on",
        "enable_chunked_prefill=False: typed",
    )


# prefix caching, chunked prefill, mode typed -> mode resolved, refused?
CACHING_TABLE = [
    (None, None, None, "align", False),
    (None, False, None, "align", True),
    (True, False, None, "align", True),
    (False, False, None, "none", False),
    (False, None, "align", "none", False),
    (False, False, "align", "none", False),
    (True, True, "none", "align", False),
    (True, False, "none", "align", True),
    (None, False, "align", "align", True),
]


@pytest.mark.parametrize(("caching", "chunked", "typed", "mode", "refused"), CACHING_TABLE)
@pytest.mark.parametrize("name", ["jamba", "bamba", "qwen3-next"])
def test_caching_chunking_and_mode(name, caching, chunked, typed, mode, refused):
    keywords = {"enable_prefix_caching": caching, "enable_chunked_prefill": chunked, "mamba_cache_mode": typed}
    resolution = resolve(keywords, example_model(name))
    assert value(resolution, "cache.mamba_cache_mode") == mode
    assert [v.code for v in resolution.violations] == (["SF101"] if refused else [])


def test_typed_align_without_caching_becomes_none_and_says_so():
    resolution = resolve({"mamba_cache_mode": "align", "enable_prefix_caching": False}, JAMBA)
    assert resolution.accepted
    [rewrite] = resolution.rewrites
    assert (rewrite.code, rewrite.typed, rewrite.value) == ("SF601", "align", "none")
    assert "prefix caching is off" in rewrite.message


def test_pure_recurrent_models_cache_only_when_asked():
    assert value(resolve({}, MAMBA), "cache.enable_prefix_caching") is False
    asked = resolve({"enable_prefix_caching": True}, MAMBA)
    assert value(asked, "cache.mamba_cache_mode") == "align"
    assert "recurrent" in (asked.values["cache.mamba_cache_mode"].because or "")
    assert [
        v.code for v in resolve({"enable_prefix_caching": True, "enable_chunked_prefill": False}, MAMBA).violations
    ] == ["SF101"]


def test_dense_models_have_no_mode_and_may_turn_chunking_off():
    resolution = resolve({"enable_chunked_prefill": False}, LLAMA)
    assert resolution.accepted
    assert value(resolution, "cache.mamba_cache_mode") == "none"
    assert value(resolution, "cache.mamba_block_size") is None


def test_a_state_block_is_a_cache_block_or_the_whole_context():
    assert value(resolve({"block_size": 32}, JAMBA), "cache.mamba_block_size") == 32
    off = resolve({"enable_prefix_caching": False, "max_model_len": 100}, JAMBA)
    assert value(off, "cache.mamba_block_size") == 100
    assert off.runtime is not None
    assert off.runtime.mamba_block_size == 100


@pytest.mark.parametrize("size", [8, 12, 20])
@pytest.mark.parametrize("model", ["jamba", "llama"])
def test_a_state_block_of_any_size_is_taken_where_nothing_reads_it(size, model):
    """vLLM takes them too: mode align overwrites the size, and a dense model has no states."""
    found = resolve({"mamba_block_size": size}, example_model(model))
    assert found.accepted
    assert {rewrite.code for rewrite in found.rewrites} == {"SF605" if model == "jamba" else "SF603"}


def test_one_request_must_fit_beside_the_null_block_where_the_release_keeps_it_free():
    # vLLM 0.33 reserves it before it checks (v1/core/kv_cache_planning.py:1533); 0.28 counts all of the memory.
    typed = {"num_gpu_blocks_override": 32, "block_size": 16, "max_model_len": 512}
    accepted = {release.name: resolve(typed, LLAMA, H100, release).accepted for release in (*VLLM_RELEASES, REFERENCE)}
    assert accepted == {"vllm==0.27.1": True, "vllm==0.28.0": True, "vllm==0.33.0": False, "reference": False}


def test_a_rank_means_external_balancing_in_vllm_whatever_is_typed_beside_it():
    # vllm/engine/arg_utils.py: data_parallel_external_lb = self.data_parallel_external_lb or rank is not None
    typed = {"data_parallel_size": 2, "data_parallel_rank": 1, "data_parallel_external_lb": False}
    for release in VLLM_RELEASES:
        found = resolve(typed, JAMBA, H100, release)
        assert value(found, "parallel.data_parallel_external_lb") is True
        assert "SF312" not in {one.code for one in found.violations}
    assert [one.code for one in resolve(typed, JAMBA).violations] == ["SF312"]


def test_a_typed_number_of_sequences_raises_the_budget_here_and_not_in_vllm():
    # vllm/engine/arg_utils.py takes the default budget, and vllm/config/scheduler.py refuses it.
    typed = {"max_num_seqs": 20000}
    assert value(resolve(typed, JAMBA, H100), "scheduler.max_num_batched_tokens") == 20000
    for release in VLLM_RELEASES:
        assert [one.code for one in resolve(typed, JAMBA, H100, release).violations if one.code != "SF110"] == ["SF202"]


@pytest.mark.parametrize("release", VLLM_RELEASES, ids=lambda one: one.version)
def test_sequences_beyond_the_blocks_are_refused_where_graphs_are_captured(release):
    # vllm/config/compilation.py: max_num_reqs > kv_cache_config.num_blocks, for models with states, on a GPU.
    def codes(model=JAMBA, device=H100, engine=release, **typed):
        return [one.code for one in resolve(typed, model, device, engine).violations]

    assert codes(num_gpu_blocks_override=1023, max_num_seqs=1024) == ["SF110"]
    assert codes(num_gpu_blocks_override=1024, max_num_seqs=1024) == []
    assert codes(num_gpu_blocks_override=1023) == ["SF110"]  # 1,024 sequences are the default of an H100
    assert codes(num_gpu_blocks_override=1023, enforce_eager=True) == []
    assert codes(num_gpu_blocks_override=1023, device=DEVICES["cpu"], max_num_seqs=1024) == []
    assert codes(example_model("llama"), num_gpu_blocks_override=1023) == []
    assert codes(num_gpu_blocks_override=1023, max_num_seqs=1024, engine=REFERENCE) == []


@pytest.mark.parametrize(
    ("device", "tokens", "seqs"),
    [(H100, 16384, 1024), (A100, 8192, 256), (B200, 16384, 1024), (L4, 8192, 256), (DEVICES["cpu"], 4096, 256)],
    ids=lambda item: getattr(item, "name", str(item)),
)
def test_budgets_by_memory_tier(device, tokens, seqs):
    resolution = resolve({}, LLAMA, device)
    assert value(resolution, "scheduler.max_num_batched_tokens") == tokens
    assert value(resolution, "scheduler.max_num_seqs") == seqs


def test_default_budgets_bend_instead_of_breaking():
    long = model_info({**MODELS["llama"], "max_position_embeddings": 9000}, "long")
    whole = resolve({"enable_chunked_prefill": False}, long)
    assert whole.accepted
    assert value(whole, "scheduler.max_num_batched_tokens") == 9000
    many = resolve({"max_num_seqs": 5000}, LLAMA)
    assert many.accepted
    assert value(many, "scheduler.max_num_batched_tokens") == 5000
    few = resolve({"max_num_seqs": 2, "max_model_len": 64}, LLAMA)
    assert value(few, "scheduler.max_num_batched_tokens") == 128
    small = resolve({"max_num_batched_tokens": 100}, LLAMA)
    assert value(small, "scheduler.max_num_seqs") == 100


def test_state_dtypes_follow_the_model_the_checkpoint_and_the_user():
    def dtypes(typed, model=JAMBA):
        resolution = resolve(typed, model)
        return tuple(
            value(resolution, f"cache.{name}") for name in ("cache_dtype", "mamba_cache_dtype", "mamba_ssm_cache_dtype")
        )

    assert dtypes({}) == ("bfloat16",) * 3
    assert dtypes({"dtype": "float64"}) == ("float64",) * 3
    assert dtypes({"mamba_cache_dtype": "float32"}) == ("bfloat16", "float32", "float32")
    assert dtypes({"mamba_ssm_cache_dtype": "float32"}) == ("bfloat16", "bfloat16", "float32")
    assert dtypes({"dtype": "half", "kv_cache_dtype": "auto", "mamba_cache_dtype": "auto"}) == ("float16",) * 3
    declared = model_info({**MODELS["qwen3-next"], "mamba_ssm_dtype": "float32"}, "declared")
    assert dtypes({}, declared) == ("bfloat16", "bfloat16", "float32")
    assert dtypes({"dtype": "float64"}, declared) == ("float64",) * 3
    assert dtypes({"mamba_ssm_cache_dtype": "bfloat16"}, declared) == ("bfloat16",) * 3
    assert any("overrides float32" in note for note in resolve({"mamba_ssm_cache_dtype": "bfloat16"}, declared).notes)


def test_auto_falls_to_float16_where_there_is_no_bfloat16():
    volta = DEVICES["volta"]
    for typed in ({}, {"dtype": "auto"}):
        resolution = resolve(typed, JAMBA, volta)
        assert resolution.accepted
        assert value(resolution, "model.dtype") == "float16"
    assert [v.code for v in resolve({"dtype": "bfloat16"}, JAMBA, volta).violations] == ["SF404"]


def test_a_long_block_under_a_small_budget_is_noted():
    grow = example_model("jamba-grow")
    assert any(
        "several steps" in note for note in resolve({"max_num_batched_tokens": 32, "max_num_seqs": 4}, grow).notes
    )
    assert not any("several steps" in note for note in resolve({}, grow).notes)


def test_options_without_effect_are_accepted_and_said():
    resolution = resolve({"enforce_eager": True, "trust_remote_code": True}, LLAMA)
    assert resolution.accepted
    assert [(r.code, r.field) for r in resolution.rewrites] == [
        ("SF608", "enforce_eager"),
        ("SF608", "trust_remote_code"),
    ]


def test_every_broken_rule_is_told_at_once():
    typed = {
        "enable_chunked_prefill": False,
        "mamba_block_size": 12,
        "quantization": "fp8",
        "long_prefill_token_threshold": 5000,
        "enable_lora": True,
        "speculative_config": {"method": "ngram"},
    }
    codes = [v.code for v in resolve(typed, JAMBA).violations]
    assert codes == ["SF101", "SF203", "SF205", "SF501", "SF501", "SF503"]


def test_an_accepted_configuration_is_frozen_and_crosses_process_borders():
    config = accept({"dtype": "float32", "seed": 7}, JAMBA)
    assert config.model.seed == 7
    with pytest.raises(AttributeError):
        config.cache.block_size = 1  # type: ignore[misc]
    assert pickle.loads(pickle.dumps(config)) == config
    settled = settle_worker(config)
    assert pickle.loads(pickle.dumps(settled)) == settled


def test_the_worker_shares_memory_between_weights_and_cache():
    """80 GiB, 0.5 of it, less the weights of a rank; blocks are what fits."""
    resolution = resolve({"gpu_memory_utilization": 0.5}, LLAMA, H100)
    weights = LLAMA.parameters * 2
    memory = value(resolution, "cache.kv_cache_memory_bytes")
    assert memory == 40 * 2**30 - weights
    runtime = resolution.runtime
    assert runtime is not None
    assert runtime.num_gpu_blocks == memory // (4 * runtime.page_size_bytes)


def test_the_largest_number_of_sequences_is_noted_before_anything_is_loaded():
    resolution = resolve({"num_gpu_blocks_override": 200, "max_model_len": 256}, JAMBA)
    assert resolution.accepted
    # 1 attention block + 3 recurrent groups of 2 states each, of 199 usable blocks
    assert any("at most 28 run at once" in note for note in resolution.notes)


def test_expert_parallelism_keeps_odd_experts_whole():
    odd = model_info({**MODELS["qwen3-next"], "moe_intermediate_size": 33}, "odd")
    assert [v.message for v in resolve({"tensor_parallel_size": 2}, odd).violations] == [
        "tensor_parallel_size=2 does not divide MLP widths 33"
    ]
    assert resolve({"tensor_parallel_size": 2, "enable_expert_parallel": True}, odd).accepted
    shared = model_info({**MODELS["qwen3-next"], "shared_expert_intermediate_size": 33}, "odd")
    assert not resolve({"tensor_parallel_size": 2, "enable_expert_parallel": True}, shared).accepted


@pytest.mark.parametrize(
    ("typed", "processes", "external"),
    [
        ({}, (False, "default"), (False, "default")),
        ({"enable_multiprocessing": True}, (True, "typed"), (False, "default")),
        ({"data_parallel_size": 2}, (True, "derived"), (False, "default")),
        ({"data_parallel_size": 2, "data_parallel_rank": 1}, (True, "derived"), (True, "derived")),
        ({"data_parallel_size": 2, "data_parallel_rank": 0, "data_parallel_external_lb": True}, (True, "derived"),
         (True, "typed")),
    ],
)  # fmt: skip
def test_several_engines_have_processes_and_a_rank_has_its_own_front_end(typed, processes, external):
    resolution = resolve(typed, LLAMA)
    assert resolution.accepted
    assert resolution.config is not None
    parallel = resolution.config.parallel
    for name, expected in (("enable_multiprocessing", processes), ("data_parallel_external_lb", external)):
        settled = resolution.values[f"parallel.{name}"]
        assert (settled.value, settled.source) == expected
        assert getattr(parallel, name) is expected[0]
    assert (parallel.data_parallel_address, parallel.data_parallel_rpc_port) == ("127.0.0.1", 29550)


@pytest.mark.parametrize(
    ("typed", "codes"),
    [
        ({"data_parallel_size": 2, "enable_multiprocessing": False}, ["SF310"]),
        ({"data_parallel_rank": 1}, ["SF311"]),
        ({"data_parallel_external_lb": True}, ["SF312"]),
        ({"data_parallel_rank": 0, "data_parallel_external_lb": False}, ["SF312"]),
        ({"pipeline_parallel_size": 4}, ["SF507"]),
        ({"pipeline_parallel_size": 5}, ["SF308"]),
    ],
)
def test_layouts_that_are_refused(typed, codes):
    assert [violation.code for violation in resolve(typed, LLAMA).violations] == codes


@pytest.mark.parametrize(
    ("typed", "value", "source"),
    [
        ({}, "torch", "default"),
        ({"kernel_backend": "torch"}, "torch", "typed"),
        ({"kernel_backend": "triton"}, "triton", "typed"),
    ],
)
def test_kernels_are_of_pytorch_unless_typed(typed, value, source):
    resolution = resolve(typed, LLAMA)
    assert resolution.config is not None
    assert resolution.config.kernel.backend == value
    assert (resolution.values["kernel.backend"].value, resolution.values["kernel.backend"].source) == (value, source)


def test_a_backend_that_is_for_tests_alone_is_none():
    with pytest.raises(ConfigError, match="kernel_backend='reference' is not one of torch, triton"):
        resolve({"kernel_backend": "reference"}, LLAMA)
