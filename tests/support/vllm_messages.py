"""What vLLM says when it refuses by a rule: whole texts as its f-strings make them, and the releases that do."""

from typing import Final, NamedTuple

ALL: Final = ("0.27.1", "0.28.0", "0.33.0")
OLD: Final = ("0.27.1", "0.28.0")
NEW: Final = ("0.33.0",)


class Said(NamedTuple):
    """One text.

    Attributes:
        rule: Code of the rule that it is about.
        text: The message; for a bare assertion, its statement.
        file: Where vLLM's package raises it.
        versions: Of vLLM.
    """

    rule: str
    text: str
    file: str
    versions: tuple[str, ...] = ALL


SAID: Final = (
    Said("SF101", "Chunked prefill is required for mamba cache mode 'align'.", "model_executor/models/config.py", OLD),
    Said("SF101", "Chunked prefill is required for Mamba prefix caching.", "model_executor/models/config.py", NEW),
    Said("SF102", "--mamba-block-size can only be set with --enable-prefix-caching", "config/vllm.py"),
    Said(
        "SF104",
        "Selected backend AttentionBackendEnum.FLASH_ATTN is not valid for this configuration. "
        "Reason: ['block_size not supported']",
        "platforms/cuda.py",
    ),
    Said(
        "SF104",
        "Aligned KV cache block size 560 is not supported by attention backend(s): FLASHINFER.",
        "platforms/interface.py",
        NEW,
    ),
    Said(
        "SF105",
        "To serve at least one request with the model's max seq len (262144), (32.0 GiB KV cache is needed, which is "
        "larger than the available KV cache memory (17.52 GiB). Based on the available memory, the estimated maximum "
        "model length is 143520. Try increasing `gpu_memory_utilization` (which also controls CPU memory on the CPU "
        "backend) or decreasing `max_model_len` when initializing the engine. See "
        "https://docs.vllm.ai/en/latest/configuration/conserving_memory/ for more details.",
        "v1/core/",
    ),
    Said(
        "SF105",
        "Cannot auto-fit max_model_len: not enough GPU memory available to serve even a single token. "
        "Try increasing `gpu_memory_utilization`.",
        "v1/core/",
    ),
    Said(
        "SF106",
        "No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the "
        "engine (this flag also controls CPU memory reservation on the CPU backend, despite its name). See "
        "https://docs.vllm.ai/en/latest/configuration/conserving_memory/ for more details.",
        "v1/core/",
    ),
    Said(
        "SF107",
        'kv_cache_dtype="float16" is incompatible with dtype="bfloat16". '
        "Please set `--kv-cache-dtype` to `auto` or `bfloat16`.",
        "config/vllm.py",
        NEW,
    ),
    Said(
        "SF110",
        "max_num_seqs (1024) exceeds available Mamba cache blocks (24). Each decode sequence requires one Mamba cache "
        "block, so CUDA graph capture cannot proceed. Please lower max_num_seqs to at most 24 or increase "
        "gpu_memory_utilization.",
        "config/compilation.py",
    ),
    Said(
        "SF201",
        "max_num_batched_tokens (2048) is smaller than max_model_len (131072). This effectively limits the maximum "
        "sequence length to max_num_batched_tokens and makes vLLM reject longer sequences. Please increase "
        "max_num_batched_tokens or decrease max_model_len.",
        "config/scheduler.py",
    ),
    Said(
        "SF202",
        "max_num_batched_tokens (128) must be greater than or equal to max_num_seqs (256).",
        "config/scheduler.py",
    ),
    Said(
        "SF203",
        "long_prefill_token_threshold (8192) cannot be greater than the max_model_len (4096).",
        "config/scheduler.py",
    ),
    Said(
        "SF204",
        "User-specified max_model_len (262144) is greater than the derived max_model_len "
        "(max_position_embeddings=131072 or model_max_length=None in model's config.json).",
        "config/model.py",
    ),
    Said(
        "SF301",
        "Total number of attention heads (32) must be divisible by tensor parallel size (3).",
        "config/model.py",
    ),
    Said("SF302", "assert self.total_num_kv_heads % tp_size == 0", "model_executor/models/jamba.py"),
    Said("SF302", "assert tp_size % self.total_num_kv_heads == 0", "model_executor/models/jamba.py"),
    Said(
        "SF304",
        "Tensor parallel world size must divide num heads.",
        "model_executor/layers/mamba/mamba_mixer2.py",
    ),
    Said(
        "SF305",
        "If tensor parallel world size does not divide num_groups, then num_groups must equal 1.",
        "model_executor/layers/mamba/mamba_mixer2.py",
    ),
    Said(
        "SF307",
        "Number of experts in the model must be greater than 0 when expert parallelism is enabled.",
        "config/model.py",
    ),
    Said("SF311", "data_parallel_rank (2) must be in the range [0, 2)", "config/parallel.py"),
    Said(
        "SF312",
        "Invalid data-parallel launch options: `--data-parallel-external-lb` requires a data-parallel rank. Set "
        "`--data-parallel-rank`, or set `--data-parallel-size` greater than 1 and use `--nnodes` with `--node-rank` "
        "so the rank can be inferred.",
        "engine/arg_utils.py",
    ),
    Said(
        "SF313",
        "Non-MoE models do not support external data parallel mode. For external load balancing, launch independent "
        "vLLM instances without --data-parallel-* arguments.",
        "engine/arg_utils.py",
    ),
    Said(
        "SF402",
        "The quantization method experts_int8 is not supported for the current GPU. Minimum capability: 80. "
        "Current capability: DeviceCapability(major=7, minor=0).",
        "config/vllm.py",
    ),
    Said(
        "SF403",
        "torch.float32 is not supported for quantization method experts_int8. "
        "Supported dtypes: [torch.bfloat16, torch.half]",
        "config/vllm.py",
    ),
    Said(
        "SF404",
        "Bfloat16 is only supported on GPUs with compute capability of at least 8.0. Your Tesla V100 GPU has compute "
        "capability 7.0. You can use float16 instead by explicitly setting the `dtype` flag in CLI, for example: "
        "--dtype=half.",
        "platforms/cuda.py",
    ),
    Said(
        "SF405",
        "Model architecture BambaForCausalLM was supported in vLLM until v0.23.0, and is not supported anymore. Please "
        "use an older version of vLLM if you want to use this model architecture.",
        "model_executor/models/registry.py",
    ),
    Said(
        "SF502",
        "Qwen3Next currently does not support 'all' prefix caching, please use '--mamba-cache-mode=align' instead",
        "model_executor/models/qwen3_next.py",
        OLD,
    ),
    Said(
        "SF502",
        "Mamba prefix caching requires mamba_cache_mode='align'",
        "v1/core/single_type_kv_cache_manager.py",
        NEW,
    ),
    Said("SF503", "awq quantization is currently not supported in cpu.", "platforms/interface.py"),
    Said("SF505", "Load format `gguf` is not supported", "model_executor/model_loader/__init__.py"),
    Said(
        "SF506",
        "--kv-cache-dtype fp8_ds_mla is not supported by the CPU attention backend on this host.",
        "platforms/cpu.py",
        NEW,
    ),
    Said(
        "SF507",
        "Pipeline parallelism is not supported for this model. Supported models implement the `SupportsPP` interface.",
        "config/model.py",
    ),
    Said(
        "SF109",
        "Available memory on node 0 (20.1/62.0 GiB) on kv cache allocation is less than requested memory for kv "
        "(40.0 GiB). Decrease --kv-cache-memory-bytes, VLLM_CPU_KVCACHE_SPACE, or reduce CPU memory used by other "
        "processes.",
        "v1/worker/cpu_worker.py",
    ),
    Said(
        "SF106",
        "The worker already uses 41.2 GiB (model weights and runtime), more than the 40.0 GiB of CPU memory reserved "
        "for it on node 0, leaving none for the KV cache. On the CPU backend, the `--gpu-memory-utilization` flag "
        "controls the fraction of CPU memory reserved (despite its name). To resolve: increase "
        "`--gpu-memory-utilization` to more than 0.66, or set the KV cache size explicitly with "
        "`--kv-cache-memory-bytes` or VLLM_CPU_KVCACHE_SPACE.",
        "v1/worker/cpu_worker.py",
        NEW,
    ),
)
