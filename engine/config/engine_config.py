"""What a configuration is once resolved, and once a worker has settled the rest: frozen sections.

`resolve` makes a `ResolvedConfig`, a worker makes an `EngineConfig` out of its own copy; nobody changes either.

Nothing here imports torch; dtypes are names such as `float32`.
"""

from dataclasses import dataclass
from typing import Literal

from staticfire.engine.config.device import Device
from staticfire.engine.config.model import ModelInfo

Dtype = Literal["float16", "bfloat16", "float32", "float64"]
MambaCacheMode = Literal["none", "align", "all"]
KernelBackend = Literal["torch", "triton"]


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """What the model is and how it is computed.

    Attributes:
        model: What the user called it.
        info: What its `config.json` says.
        dtype: What weights and activations are computed in.
        max_model_len: Tokens of the longest request.
        seed: Of dummy weights, and of requests that bring none.
        fit_max_model_len: Whether the worker lowers `max_model_len` to what its pool holds.
    """

    model: str
    info: ModelInfo
    dtype: Dtype
    max_model_len: int
    seed: int
    fit_max_model_len: bool = False


@dataclass(frozen=True, slots=True)
class CacheConfig:
    """KV cache and recurrent-state cache, as the front end resolves them (before the worker aligns)."""

    block_size: int
    enable_prefix_caching: bool
    mamba_cache_mode: MambaCacheMode
    mamba_block_size: int | None
    cache_dtype: str
    mamba_cache_dtype: str
    mamba_ssm_cache_dtype: str
    num_gpu_blocks_override: int | None
    kv_cache_memory_bytes: int


@dataclass(frozen=True, slots=True)
class SchedulerConfig:
    """What one step may hold."""

    max_num_batched_tokens: int
    max_num_seqs: int
    max_model_len: int
    enable_chunked_prefill: bool
    long_prefill_token_threshold: int
    policy: Literal["fcfs", "priority"]


@dataclass(frozen=True, slots=True)
class ParallelConfig:
    """How the model is spread over processes.

    Attributes:
        tensor_parallel_size: Ranks that share every layer.
        pipeline_parallel_size: Ranks that share the layers out.
        data_parallel_size: Engines, each with a whole copy of the model.
        enable_multiprocessing: Whether the engine core runs in a process of its own.
        data_parallel_rank: The one engine behind this front end; None where one front end serves them all.
        data_parallel_external_lb: Whether somebody outside spreads the requests over the front ends.
        data_parallel_address: Where the front end of rank 0 listens.
        data_parallel_rpc_port: The port it listens on.
    """

    tensor_parallel_size: int
    pipeline_parallel_size: int
    data_parallel_size: int
    enable_multiprocessing: bool = False
    data_parallel_rank: int | None = None
    data_parallel_external_lb: bool = False
    data_parallel_address: str = "127.0.0.1"
    data_parallel_rpc_port: int = 29550


@dataclass(frozen=True, slots=True)
class QuantizationConfig:
    """The weight quantization method; None computes in the model's dtype."""

    method: Literal["experts_int8"] | None


@dataclass(frozen=True, slots=True)
class LoadConfig:
    """Where the weights come from: `safetensors` reads a checkpoint, `dummy` draws them from the seed."""

    load_format: Literal["safetensors", "dummy"]


@dataclass(frozen=True, slots=True)
class KernelConfig:
    """What computes the ops: PyTorch, or our Triton kernels (on a CPU in Triton's interpreter). One a process."""

    backend: KernelBackend


@dataclass(frozen=True, slots=True)
class Runtime:
    """What the worker makes of a resolved configuration at start-up (block-size alignment, capacity).

    Attributes:
        block_size: Tokens in one attention block after alignment.
        mamba_block_size: Tokens between two cached recurrent states; None without recurrent layers.
        kernel_block_size: Step in which the block size may grow, in tokens.
        attention_bytes_per_token: KV bytes of one token in one attention layer of one rank.
        state_bytes: Unpadded recurrent state of one layer of one rank, in bytes (0 without recurrent layers).
        page_size_bytes: Bytes of one block of one layer; equal for all groups.
        mamba_page_size_padded: The padded state page, None where the state fills the page exactly.
        num_gpu_blocks: Blocks in the pool, the null block included.
        num_groups: Cache groups that share the pool.
        max_model_len: Tokens of the longest request; shorter than resolved where it was fitted to the pool.
        kv_cache_max_concurrency: Requests of `max_model_len` tokens that fit at once.
        kv_cache_size_tokens: `int(kv_cache_max_concurrency * max_model_len)`.
    """

    block_size: int
    mamba_block_size: int | None
    kernel_block_size: int
    attention_bytes_per_token: int
    state_bytes: int
    page_size_bytes: int
    mamba_page_size_padded: int | None
    num_gpu_blocks: int
    num_groups: int
    max_model_len: int
    kv_cache_max_concurrency: float
    kv_cache_size_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedConfig:
    """A whole accepted configuration, as the front end resolves it: nothing of it has met a worker yet."""

    model: ModelConfig
    cache: CacheConfig
    scheduler: SchedulerConfig
    parallel: ParallelConfig
    quantization: QuantizationConfig
    load: LoadConfig
    kernel: KernelConfig = KernelConfig("torch")
    device: Device


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineConfig(ResolvedConfig):
    """A resolved configuration with what a worker made of it.

    `max_model_len` of the sections is the settled one, the same number as the run-time values have.
    """

    runtime: Runtime
