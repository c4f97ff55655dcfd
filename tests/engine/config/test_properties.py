"""Laws of resolution, over models, devices and keywords."""

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from staticfire.engine.config import CPU, Device, resolve
from staticfire.engine.config.draft import KEYWORD_OF
from staticfire.engine.config.rules.examples import MODELS, example_model
from staticfire.engine.worker.settle import settle_worker

DEVICES = (
    CPU,
    Device("v100", "cuda", 32 * 2**30, (7, 0)),
    Device("a100", "cuda", 80 * 2**30, (8, 0)),
    Device("h100", "cuda", 80 * 2**30, (9, 0)),
    Device("b200", "cuda", 179 * 2**30, (10, 0)),
    Device("mi300x", "rocm", 192 * 2**30, (9, 4)),
)
SOUND = [name for name in MODELS if example_model(name).quant_method is None]
RECURRENT = [name for name in SOUND if example_model(name).recurrent_layers]

KEYWORDS = {
    "dtype": st.sampled_from(["auto", "float16", "bfloat16", "float32", "float64"]),
    "max_model_len": st.integers(1, 2048) | st.just(-1),
    "seed": st.integers(0, 9),
    "block_size": st.integers(1, 8).map(lambda n: 16 * n),
    "enable_prefix_caching": st.booleans(),
    "mamba_cache_mode": st.sampled_from(["none", "align"]),
    "mamba_block_size": st.integers(1, 20).map(lambda n: 8 * n),
    "mamba_cache_dtype": st.sampled_from(["auto", "bfloat16", "float32"]),
    "mamba_ssm_cache_dtype": st.sampled_from(["auto", "bfloat16", "float32"]),
    "kv_cache_dtype": st.sampled_from(["auto", "fp8"]),
    "num_gpu_blocks_override": st.integers(2, 10_000),
    "kv_cache_memory_bytes": st.integers(1, 2**28),
    "gpu_memory_utilization": st.sampled_from([0.1, 0.5, 1.0]),
    "max_num_batched_tokens": st.integers(1, 20_000),
    "max_num_seqs": st.integers(1, 2000),
    "enable_chunked_prefill": st.booleans(),
    "long_prefill_token_threshold": st.integers(0, 256),
    "scheduling_policy": st.sampled_from(["fcfs", "priority"]),
    "tensor_parallel_size": st.sampled_from([1, 2, 3, 4]),
    "pipeline_parallel_size": st.sampled_from([1, 1, 1, 2]),
    "data_parallel_size": st.sampled_from([1, 2]),
    "enable_multiprocessing": st.sampled_from([True, True, True, False]),
    "data_parallel_rank": st.sampled_from([0, 0, 0, 1]),
    "data_parallel_external_lb": st.sampled_from([True, True, True, False]),
    "data_parallel_rpc_port": st.integers(1, 65535),
    "quantization": st.sampled_from(["experts_int8", "fp8"]),
    "load_format": st.sampled_from(["auto", "dummy", "pt"]),
    "enforce_eager": st.booleans(),
    "enable_lora": st.booleans(),
}
configurations = st.fixed_dictionaries({}, optional=KEYWORDS)
few = (
    st.integers(0, 2)
    .flatmap(lambda n: st.lists(st.sampled_from(sorted(KEYWORDS)), min_size=n, max_size=n, unique=True))
    .flatmap(lambda names: st.fixed_dictionaries({name: KEYWORDS[name] for name in names}))
)
typed_keywords = few | configurations
models = st.sampled_from(SOUND).map(example_model)
devices = st.sampled_from(DEVICES)


@given(typed=typed_keywords, model=models, device=devices, order=st.randoms(use_true_random=False))
def test_the_order_of_keywords_does_not_matter(typed, model, device, order):
    names = list(typed)
    order.shuffle(names)
    one, other = resolve(typed, model, device), resolve({name: typed[name] for name in names}, model, device)
    assert one.values == other.values
    assert {v.message for v in one.violations} == {v.message for v in other.violations}
    assert (one.runtime, one.config, one.arithmetic) == (other.runtime, other.config, other.arithmetic)


@settings(max_examples=300)
@given(typed=typed_keywords, model=models, device=devices)
def test_an_accepted_configuration_typed_out_is_the_same_configuration(typed, model, device):
    first = resolve(typed, model, device)
    assume(first.accepted)
    settled = {
        keyword: first.values[field].value
        for field, keyword in KEYWORD_OF.items()
        if first.values[field].value is not None
    }
    if first.values["model.fit_max_model_len"].value:
        settled["max_model_len"] = -1
    second = resolve(settled, model, device)
    assert second.accepted, second.violations
    assert second.config == first.config
    third = resolve(settled, model, device)
    assert third == second


@given(model=models, device=devices)
def test_defaults_are_never_refused(model, device):
    assert resolve({}, model, device).violations == ()


@given(
    model=models,
    device=devices,
    names=st.sets(
        st.sampled_from(["dtype", "kv_cache_dtype", "mamba_cache_dtype", "mamba_ssm_cache_dtype", "load_format"])
    ),
)
def test_auto_is_never_refused_and_means_unset(model, device, names):
    auto, unset = resolve(dict.fromkeys(names, "auto"), model, device), resolve({}, model, device)
    assert auto.violations == ()
    assert auto.config == unset.config


@given(typed=typed_keywords, model=st.sampled_from(RECURRENT).map(example_model), device=devices)
def test_align_without_chunked_prefill_is_always_refused(typed, model, device):
    resolution = resolve(typed, model, device)
    align = resolution.values["cache.mamba_cache_mode"].value == "align"
    chunked = resolution.values["scheduler.enable_chunked_prefill"].value
    assert ("SF101" in {v.code for v in resolution.violations}) == (align and not chunked)
    caching = resolution.values["cache.enable_prefix_caching"].value
    assert align == caching


@given(typed=configurations, model=st.sampled_from(RECURRENT).map(example_model))
def test_typed_align_without_caching_becomes_none_and_says_so(typed, model):
    typed = {**typed, "mamba_cache_mode": "align", "enable_prefix_caching": False}
    resolution = resolve(typed, model)
    assert resolution.values["cache.mamba_cache_mode"].value == "none"
    assert "SF601" in {rewrite.code for rewrite in resolution.rewrites}


@given(typed=typed_keywords, model=models, device=devices)
def test_provenance_is_honest(typed, model, device):
    resolution = resolve(typed, model, device)
    for field, value in resolution.values.items():
        keyword = KEYWORD_OF.get(field)
        if value.source == "typed":
            assert keyword in typed
            assert value.value == typed[keyword]
        if value.source == "derived":
            assert value.because
        else:
            assert value.because is None
            assert value.parents == ()
        assert set(value.parents) <= set(resolution.values)
        if keyword in typed and value.source != "typed" and typed[keyword] not in {"auto", -1, value.value}:
            assert any(rewrite.field == field for rewrite in resolution.rewrites), field


@given(typed=typed_keywords, model=models, device=devices)
def test_every_accepted_configuration_is_live(typed, model, device):
    """One request of full length fits beside the null block, and pages hold what is put there."""
    resolution = resolve(typed, model, device)
    assume(resolution.accepted)
    runtime, config = resolution.runtime, resolution.config
    assert runtime is not None
    assert config is not None
    assert runtime.kv_cache_max_concurrency >= 1
    assert runtime.page_size_bytes >= runtime.state_bytes
    assert runtime.page_size_bytes >= runtime.block_size * runtime.attention_bytes_per_token
    assert runtime.block_size >= config.cache.block_size
    assert runtime.block_size % 16 == 0
    assert config.scheduler.max_num_batched_tokens >= config.scheduler.max_num_seqs
    assert config.scheduler.enable_chunked_prefill or (
        config.scheduler.max_num_batched_tokens >= config.scheduler.max_model_len
    )


@given(typed=typed_keywords, model=models, device=devices)
def test_the_worker_settles_what_was_predicted_once_and_for_all(typed, model, device):
    resolution = resolve(typed, model, device)
    assume(resolution.accepted)
    assert resolution.config is not None
    settled = settle_worker(resolution.config)
    assert settled.runtime == resolution.runtime
    assert settle_worker(settled) == settled


@given(typed=typed_keywords, model=models, device=devices)
def test_chains_run_from_causes_to_effects(typed, model, device):
    for violation in resolve(typed, model, device).violations:
        assert violation.chain
        names = [line.partition("=")[0] for line in violation.chain]
        assert len(names) == len(set(names))
