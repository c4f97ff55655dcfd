"""The configuration while it is being settled: plain attributes for the rules, provenance beside them."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from staticfire.engine.config.alignment import Alignment
from staticfire.engine.config.capacity import Demand
from staticfire.engine.config.device import Device
from staticfire.engine.config.engine_config import MambaCacheMode
from staticfire.engine.config.kernel_blocks import KernelBlocks
from staticfire.engine.config.model import ModelInfo
from staticfire.engine.config.release import EngineRelease
from staticfire.engine.config.resolution import Value
from staticfire.engine.config.speculation import Speculation
from staticfire.engine.config.typed import Typed

if TYPE_CHECKING:
    from staticfire.engine.config.weights import Weights

KEYWORD_OF: Final[dict[str, str]] = {
    "model.dtype": "dtype",
    "model.max_model_len": "max_model_len",
    "model.seed": "seed",
    "cache.block_size": "block_size",
    "cache.enable_prefix_caching": "enable_prefix_caching",
    "cache.mamba_cache_mode": "mamba_cache_mode",
    "cache.mamba_block_size": "mamba_block_size",
    "cache.cache_dtype": "kv_cache_dtype",
    "cache.mamba_cache_dtype": "mamba_cache_dtype",
    "cache.mamba_ssm_cache_dtype": "mamba_ssm_cache_dtype",
    "cache.num_gpu_blocks_override": "num_gpu_blocks_override",
    "cache.kv_cache_memory_bytes": "kv_cache_memory_bytes",
    "cache.gpu_memory_utilization": "gpu_memory_utilization",
    "scheduler.max_num_batched_tokens": "max_num_batched_tokens",
    "scheduler.max_num_seqs": "max_num_seqs",
    "scheduler.enable_chunked_prefill": "enable_chunked_prefill",
    "scheduler.long_prefill_token_threshold": "long_prefill_token_threshold",
    "scheduler.policy": "scheduling_policy",
    "parallel.tensor_parallel_size": "tensor_parallel_size",
    "parallel.pipeline_parallel_size": "pipeline_parallel_size",
    "parallel.data_parallel_size": "data_parallel_size",
    "parallel.data_parallel_rank": "data_parallel_rank",
    "parallel.data_parallel_external_lb": "data_parallel_external_lb",
    "parallel.data_parallel_address": "data_parallel_address",
    "parallel.data_parallel_rpc_port": "data_parallel_rpc_port",
    "parallel.enable_multiprocessing": "enable_multiprocessing",
    "parallel.enable_expert_parallel": "enable_expert_parallel",
    "quantization.method": "quantization",
    "load.load_format": "load_format",
    "kernel.backend": "kernel_backend",
}
"""Resolved `section.field` -> the keyword a user types for it."""

FIELD_OF: Final[dict[str, str]] = {keyword: field for field, keyword in KEYWORD_OF.items()}


class Draft:
    """What settling has found so far. Rules read the attributes; nobody else changes them.

    An attribute has the name of its keyword (`kv_cache_dtype`, `quantization`, ...); `values` has the provenance.
    `unknown` says of a run-time value (a field of `Runtime`) why it is not known, though something stands in its place.
    """

    __slots__ = (
        "alignment",
        "block_size",
        "data_parallel_address",
        "data_parallel_external_lb",
        "data_parallel_rank",
        "data_parallel_rpc_port",
        "data_parallel_size",
        "demand",
        "device",
        "dtype",
        "enable_chunked_prefill",
        "enable_expert_parallel",
        "enable_multiprocessing",
        "enable_prefix_caching",
        "fit_max_model_len",
        "fitted_max_model_len",
        "gpu_memory_utilization",
        "kernel_backend",
        "kernel_blocks",
        "kv_cache_dtype",
        "kv_cache_memory_bytes",
        "load_format",
        "long_prefill_token_threshold",
        "mamba_block_size",
        "mamba_cache_dtype",
        "mamba_cache_mode",
        "mamba_ssm_cache_dtype",
        "max_model_len",
        "max_num_batched_tokens",
        "max_num_seqs",
        "model",
        "num_gpu_blocks",
        "num_gpu_blocks_override",
        "others",
        "pipeline_parallel_size",
        "quantization",
        "release",
        "scheduling_policy",
        "seed",
        "speculation",
        "tensor_parallel_size",
        "typed",
        "unknown",
        "values",
        "weights",
    )

    alignment: Alignment
    block_size: int
    data_parallel_address: str
    data_parallel_external_lb: bool
    data_parallel_rank: int | None
    data_parallel_rpc_port: int
    data_parallel_size: int
    demand: Demand
    device: Device
    dtype: str
    enable_chunked_prefill: bool
    enable_expert_parallel: bool
    enable_multiprocessing: bool
    enable_prefix_caching: bool
    fit_max_model_len: bool
    fitted_max_model_len: int
    gpu_memory_utilization: float
    kernel_backend: str
    kernel_blocks: KernelBlocks
    kv_cache_dtype: str
    kv_cache_memory_bytes: int
    load_format: str
    long_prefill_token_threshold: int
    mamba_block_size: int | None
    mamba_cache_dtype: str
    mamba_cache_mode: MambaCacheMode
    mamba_ssm_cache_dtype: str
    max_model_len: int
    max_num_batched_tokens: int
    max_num_seqs: int
    model: ModelInfo
    num_gpu_blocks: int
    num_gpu_blocks_override: int | None
    others: Mapping[str, Any]
    pipeline_parallel_size: int
    quantization: str | None
    release: EngineRelease
    scheduling_policy: str
    seed: int
    speculation: Speculation
    tensor_parallel_size: int
    typed: Typed
    unknown: dict[str, str]
    values: dict[str, Value]
    weights: "Weights"

    def __init__(
        self, typed: Typed, others: Mapping[str, Any], model: ModelInfo, device: Device, release: EngineRelease
    ) -> None:
        self.typed = typed
        self.others = others
        self.model = model
        self.device = device
        self.release = release
        self.values = {}
        self.unknown = {}

    @property
    def state_tokens(self) -> int:
        """Speculative tokens by which the engine lengthens a convolution state; 0 where their number is not known."""
        unaware = self.model.model_type in self.release.states_without_speculation
        return 0 if unaware else self.speculation.tokens or 0

    @property
    def world_size(self) -> int:
        """Ranks that share one copy of the model."""
        return self.tensor_parallel_size * self.pipeline_parallel_size

    def plain(self, field: str, default: Value) -> Any:
        """Settle a field that is what was typed, else a constant default."""
        typed = getattr(self.typed, KEYWORD_OF[field])
        value = default if typed is None else Value(typed, "typed")
        self.values[field] = value
        return value.value

    def derive(self, field: str, value: Any, because: str, *parents: str) -> Any:
        """Settle a field by a reason."""
        self.values[field] = Value(value, "derived", because, parents)
        return value

    def keep(self, field: str, value: Any) -> Any:
        """Settle a field as typed."""
        self.values[field] = Value(value, "typed")
        return value
