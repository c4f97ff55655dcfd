"""Every `EngineArgs` keyword of vLLM 0.27.1, 0.28.0 and 0.33.0 that the reference engine does not implement.

Each is either accepted without effect, because its value cannot change what is computed, or refused as unsupported
unless it has a value that asks for nothing. The implemented ones are the fields of `typed.Typed`.
"""

from dataclasses import dataclass
from typing import Any, Final, Literal

VERSIONS: Final = ("0.27.1", "0.28.0", "0.33.0")


@dataclass(frozen=True, slots=True)
class Option:
    """A keyword that is known but not implemented.

    Attributes:
        name: The keyword.
        effect: `none` (accepted, nothing changes) or `unsupported` (refused).
        reason: Why.
        kind: How it stands on a command line: a flag, one value, or several.
        versions: The versions of vLLM, out of `VERSIONS`, that have it.
    """

    name: str
    effect: Literal["none", "unsupported"]
    reason: str
    kind: Literal["flag", "value", "list"]
    versions: tuple[str, ...]

    def asks_for_nothing(self, value: Any) -> bool:
        """Whether `value` is what the engine does anyway."""
        return not value or value in HARMLESS.get(self.name, ())


WITHOUT_EFFECT: Final = (
    (
        "the reference engine runs eagerly and captures no graphs",
        """
        enforce_eager cudagraph_capture_sizes max_cudagraph_capture_size compilation_config optimization_level
        performance_mode ir_op_priority kernel_config enable_flashinfer_autotune monokernel jit_monitor_mode
        jit_monitor_verbose
        """,
    ),
    (
        "it chooses among kernels that compute the same; the reference engine has one of each",
        """
        attention_backend attention_config moe_backend linear_backend mamba_backend mamba_ssu_algorithm
        gdn_prefill_backend kda_prefill_backend kda_decode_backend sparse_indexer_topk_backend disable_cascade_attn
        enable_bf16x3_router_gemm use_fp64_gumbel model_impl
        """,
    ),
    (
        "the reference engine writes no such logs, traces or metrics",
        """
        disable_log_stats aggregate_engine_logging enable_log_requests log_level log_config_file logging_config
        show_hidden_metrics_for_version otlp_traces_endpoint collect_detailed_traces kv_cache_metrics
        kv_cache_metrics_sample cudagraph_metrics enable_layerwise_nvtx_tracing enable_mfu_metrics
        enable_logging_iteration_details enable_mm_processor_stats per_request_spec_decode_metrics
        custom_histogram_buckets profiler_config ray_workers_use_nsight enable_trace_replay
        """,
    ),
    (
        "it belongs to a server; the reference engine is called as a library",
        """
        served_model_name shutdown_timeout fail_on_environ_validation _api_process_count _api_process_rank
        stream_interval max_num_queued_reqs max_num_queued_tokens renderer_num_workers reasoning_parser
        reasoning_parser_plugin reasoning_config allowed_local_media_path allowed_media_domains watchdog_config
        structured_outputs_config
        """,
    ),
    (
        "sampling options come with each request",
        """
        generation_config max_logprobs
        """,
    ),
    (
        "checkpoints are read from local safetensors, in one way",
        """
        download_dir safetensors_load_strategy safetensors_prefetch_num_threads safetensors_prefetch_block_size
        use_tqdm_on_load pt_load_map_location max_parallel_loading_workers ignore_patterns enable_ep_weight_filter
        config_format hf_token code_revision
        """,
    ),
    (
        "no code of a checkpoint is ever run, whatever this says",
        """
        trust_remote_code
        """,
    ),
    (
        "it tunes how ranks talk to each other, not what they compute",
        """
        distributed_executor_backend master_addr master_port distributed_timeout_seconds
        cpu_distributed_timeout_seconds numa_bind numa_bind_nodes numa_bind_cpus device_ids dcp_comm_backend
        dcp_kv_cache_interleave_size cp_kv_cache_interleave_size dcp_q_replicate all2all_backend
        disable_custom_all_reduce disable_nccl_for_dp_synchronization data_parallel_backend
        expert_placement_strategy enable_shm_tensor_arena enable_nccl_comm_suspend
        enable_batch_sharded_sampling enable_hc_sp dp_sync_interval eplb_config elastic_ep_max_dp_size ubatch_size
        dbo_decode_token_threshold dbo_prefill_token_threshold
        """,
    ),
    (
        "the reference engine runs language layers only",
        """
        language_model_only limit_mm_per_prompt interleave_mm_strings media_io_kwargs mm_processor_kwargs
        mm_processor_cache_gb mm_processor_cache_type mm_processor_device mm_device_do_normalize mm_hasher_algorithm
        mm_shm_cache_max_object_size_mb mm_encoder_tp_mode mm_encoder_attn_backend mm_encoder_attn_dtype
        mm_encoder_fp8_scale_path mm_encoder_fp8_scale_save_path mm_encoder_fp8_scale_save_margin skip_mm_profiling
        video_pruning_rate video_pruning_method mm_tensor_ipc mm_ipc_gpu_memory_gb ec_manager_config
        disable_chunked_mm_input
        """,
    ),
    (
        "it refines an option that the reference engine does not have",
        """
        max_loras max_lora_rank max_lora_cls_labels default_mm_loras fully_sharded_loras max_cpu_loras lora_dtype
        lora_target_modules enable_tower_connector_lora specialize_active_lora enable_mixed_moe_lora_format
        enable_moe_shared_loras offload_backend offload_params cpu_offload_params offload_num_in_group
        offload_prefetch_step kv_offloading_backend sleep_mode_backend sleep_mode_offload_cudagraph
        sleep_preserve_parameter_names enable_cumem_allocator replayssm_buffer_len mamba_cache_philox_rounds
        fault_tolerance_config swa_bounded_replay
        """,
    ),
    (
        "the reference engine hashes blocks in one way",
        """
        prefix_caching_hash_algo
        """,
    ),
    (
        "steps are scheduled one after the other, with the same result",
        """
        async_scheduling prefill_schedule_interval scheduler_reserve_full_isl watermark
        """,
    ),
    (
        "the families at hand have no sliding window",
        """
        disable_sliding_window
        """,
    ),
    (
        "it lets deprecated quantizations through; the reference engine has none",
        """
        allow_deprecated_quantization
        """,
    ),
    (
        "nothing reads it",
        """
        additional_config
        """,
    ),
)

UNSUPPORTED: Final = (
    (
        "name the model as the argument",
        """
        model model_weights
        """,
    ),
    (
        "the model is run as its config.json and tokenizer.json say, from one local folder",
        """
        tokenizer tokenizer_mode tokenizer_revision hf_config_path hf_overrides model_class_overrides revision
        skip_tokenizer_init override_generation_config model_loader_extra_config
        """,
    ),
    (
        "the reference engine only generates text",
        """
        runner convert pooler_config io_processor_plugin tokens_only diffusion_config
        """,
    ),
    (
        "prompts are text or token ids",
        """
        enable_prompt_embeds enable_mm_embeds mm_encoder_only
        """,
    ),
    (
        "it has no such output",
        """
        enable_return_routed_experts return_sampling_mask logprobs_mode aux_output_config watermark_config
        """,
    ),
    (
        "its sampler takes no plug-ins",
        """
        logits_processors
        """,
    ),
    (
        "it has no LoRA",
        """
        enable_lora
        """,
    ),
    (
        "it has no speculative decoding yet",
        """
        speculative_config spec_method spec_model spec_tokens
        """,
    ),
    (
        "weights and cache stay in one memory",
        """
        cpu_offload_gb offload_group_size kv_offloading_size enable_sleep_mode
        """,
    ),
    (
        "it moves no cache or weights between engines",
        """
        kv_transfer_config kv_events_config ec_transfer_config weight_transfer_config
        """,
    ),
    (
        "engines and their ranks are laid out by the tensor and data parallel sizes alone",
        """
        nnodes node_rank prefill_context_parallel_size decode_context_parallel_size
        data_parallel_start_rank data_parallel_size_local data_parallel_hybrid_lb
        data_parallel_multi_port_external_lb enable_elastic_ep enable_dbo enable_eplb enable_fault_tolerance
        """,
    ),
    (
        "its scheduler and worker are its own",
        """
        scheduler_cls worker_cls worker_extension_cls max_num_scheduled_tokens max_num_active_seqs
        long_prefill_token_threshold_adaptive
        """,
    ),
    (
        "without the hybrid cache manager the two kinds of state cannot share a pool",
        """
        disable_hybrid_kv_cache_manager
        """,
    ),
    (
        "keys and values have one dtype, without scales",
        """
        calculate_kv_scales kv_cache_dtype_skip_layers override_attention_dtype
        """,
    ),
    (
        "a prefix is matched and kept by whole blocks",
        """
        prefix_match_unit prefix_cache_retention_interval enable_mamba_shared_prefix_checkpoint
        kv_sharing_fast_prefill
        """,
    ),
    (
        "recurrent states are stored as they are, rounded to nearest",
        """
        use_replayssm enable_mamba_cache_stochastic_rounding mamba_config
        """,
    ),
    (
        "quantizations are chosen by name",
        """
        quantization_config
        """,
    ),
    (
        "no family at hand has such layers",
        """
        engram_config
        """,
    ),
)

HARMLESS: Final[dict[str, tuple[Any, ...]]] = {
    "runner": ("auto", "generate"),
    "convert": ("auto", "none"),
    "tokenizer_mode": ("auto",),
    "logprobs_mode": ("raw_logprobs",),
    "nnodes": (1,),
    "prefill_context_parallel_size": (1,),
    "decode_context_parallel_size": (1,),
    "data_parallel_size_local": (1,),
    "worker_cls": ("auto",),
}
"""Values, besides empty, false, zero and None, that ask for nothing."""

FLAGS: Final = """
    aggregate_engine_logging allow_deprecated_quantization async_scheduling calculate_kv_scales cudagraph_metrics
    data_parallel_hybrid_lb data_parallel_multi_port_external_lb dcp_q_replicate
    disable_cascade_attn disable_chunked_mm_input disable_custom_all_reduce disable_hybrid_kv_cache_manager
    disable_log_stats disable_nccl_for_dp_synchronization disable_sliding_window enable_batch_sharded_sampling
    enable_bf16x3_router_gemm enable_cumem_allocator enable_dbo enable_elastic_ep enable_ep_weight_filter enable_eplb
    enable_fault_tolerance enable_flashinfer_autotune enable_hc_sp enable_layerwise_nvtx_tracing enable_log_requests
    enable_logging_iteration_details enable_lora enable_mamba_cache_stochastic_rounding
    enable_mamba_shared_prefix_checkpoint enable_mfu_metrics enable_mixed_moe_lora_format enable_mm_embeds
    enable_mm_processor_stats enable_moe_shared_loras enable_nccl_comm_suspend enable_prompt_embeds
    enable_return_routed_experts enable_shm_tensor_arena enable_sleep_mode enable_tower_connector_lora
    enable_trace_replay enforce_eager fail_on_environ_validation fully_sharded_loras interleave_mm_strings
    jit_monitor_verbose kv_cache_metrics kv_sharing_fast_prefill language_model_only
    long_prefill_token_threshold_adaptive mm_device_do_normalize mm_encoder_only monokernel numa_bind
    ray_workers_use_nsight return_sampling_mask scheduler_reserve_full_isl skip_mm_profiling skip_tokenizer_init
    sleep_mode_offload_cudagraph specialize_active_lora swa_bounded_replay tokens_only trust_remote_code
    use_fp64_gumbel use_replayssm use_tqdm_on_load
"""
LISTS: Final = """
    allowed_media_domains collect_detailed_traces cpu_offload_params cudagraph_capture_sizes device_ids
    kv_cache_dtype_skip_layers logits_processors lora_target_modules numa_bind_cpus numa_bind_nodes offload_params
    sleep_preserve_parameter_names
"""
ONLY_IN: Final = (
    (
        ("0.27.1", "0.28.0"),
        """
        enable_bf16x3_router_gemm
        """,
    ),
    (
        ("0.27.1",),
        """
        override_attention_dtype calculate_kv_scales
        """,
    ),
    (
        ("0.28.0", "0.33.0"),
        """
        return_sampling_mask mm_processor_device mm_device_do_normalize ec_manager_config
        """,
    ),
    (
        ("0.33.0",),
        """
        dcp_q_replicate enable_hc_sp enable_batch_sharded_sampling sparse_indexer_topk_backend elastic_ep_max_dp_size
        dp_sync_interval prefix_cache_retention_interval long_prefill_token_threshold_adaptive max_num_active_seqs
        max_num_queued_reqs max_num_queued_tokens enable_trace_replay enable_shm_tensor_arena max_lora_cls_labels
        aux_output_config watermark_config per_request_spec_decode_metrics custom_histogram_buckets engram_config
        monokernel logging_config log_level log_config_file sleep_mode_backend sleep_mode_offload_cudagraph
        sleep_preserve_parameter_names enable_nccl_comm_suspend enable_mamba_shared_prefix_checkpoint
        swa_bounded_replay watchdog_config kda_decode_backend
        """,
    ),
)
"""Keywords that not every version has."""


def _kind(name: str, flags: frozenset[str], lists: frozenset[str]) -> Literal["flag", "value", "list"]:
    if name in flags:
        return "flag"
    return "list" if name in lists else "value"


def _table() -> dict[str, Option]:
    versions = {name: which for which, names in ONLY_IN for name in names.split()}
    flags, lists = frozenset(FLAGS.split()), frozenset(LISTS.split())
    effects: tuple[tuple[Literal["none", "unsupported"], tuple[tuple[str, str], ...]], ...] = (
        ("none", WITHOUT_EFFECT),
        ("unsupported", UNSUPPORTED),
    )
    return {
        name: Option(name, effect, reason, _kind(name, flags, lists), versions.get(name, VERSIONS))
        for effect, groups in effects
        for reason, names in groups
        for name in names.split()
    }


KNOWN: Final[dict[str, Option]] = _table()
