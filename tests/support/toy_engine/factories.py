"""Configurations and requests for tests of the bookkeeping, built without files or rules."""

from collections.abc import Sequence
from typing import Any

from staticfire.engine.cache.layout import plan_cache
from staticfire.engine.config.device import CPU
from staticfire.engine.config.engine_config import (
    CacheConfig,
    EngineConfig,
    LoadConfig,
    MambaCacheMode,
    ModelConfig,
    ParallelConfig,
    QuantizationConfig,
    Runtime,
    SchedulerConfig,
)
from staticfire.engine.config.model import LayerInfo, ModelInfo, StateShape
from staticfire.engine.request import Request
from staticfire.engine.sampling_params import SamplingParams
from staticfire.engine.scheduler.scheduler import Scheduler
from toy_engine.drive import Engine, make_engine

VOCAB = 50


def toy_model(pattern: str = "MA", max_len: int = 256) -> ModelInfo:
    """A model whose layers are spelt out: A for attention, M for Mamba-1."""
    layers = tuple(LayerInfo("attention" if kind == "A" else "mamba1", "dense") for kind in pattern)
    shapes = (StateShape("conv", (8, 3)), StateShape("ssm", (8, 4)))
    return ModelInfo(
        name="toy",
        architecture="ToyForCausalLM",
        model_type="toy",
        layers=layers,
        hidden_size=4,
        num_attention_heads=2,
        num_kv_heads=2,
        head_dim=2,
        vocab_size=VOCAB,
        max_position_embeddings=max_len,
        num_experts=0,
        num_experts_per_tok=0,
        dtype="float32",
        ssm_dtype=None,
        state_shapes=(lambda tensor_parallel, num_spec: shapes) if "M" in pattern else None,
        hf={},
    )


def toy_config(
    *,
    pattern: str = "MA",
    block_size: int = 16,
    mode: MambaCacheMode = "align",
    caching: bool = True,
    num_blocks: int = 200,
    budget: int = 256,
    max_num_seqs: int = 8,
    max_len: int = 256,
    chunked: bool = True,
    threshold: int = 0,
    policy: Any = "fcfs",
) -> EngineConfig:
    """A whole configuration of the toy model; the run-time values are what a worker would have settled on."""
    hybrid = "M" in pattern
    mamba_block = (block_size if mode == "align" else max_len) if hybrid else None
    return EngineConfig(
        model=ModelConfig("toy", toy_model(pattern, max_len), "float32", max_len, 0),
        cache=CacheConfig(
            block_size=block_size,
            enable_prefix_caching=caching,
            mamba_cache_mode=mode,
            mamba_block_size=mamba_block,
            cache_dtype="auto",
            mamba_cache_dtype="auto",
            mamba_ssm_cache_dtype="auto",
            num_gpu_blocks_override=num_blocks,
            kv_cache_memory_bytes=0,
        ),
        scheduler=SchedulerConfig(budget, max_num_seqs, max_len, chunked, threshold, policy),
        parallel=ParallelConfig(1, 1, 1),
        quantization=QuantizationConfig(None),
        load=LoadConfig("dummy"),
        device=CPU,
        runtime=Runtime(
            block_size=block_size,
            mamba_block_size=mamba_block,
            kernel_block_size=1,
            attention_bytes_per_token=32,
            state_bytes=56 if hybrid else 0,
            page_size_bytes=32 * max(block_size, 2),
            mamba_page_size_padded=None,
            num_gpu_blocks=num_blocks,
            num_groups=2 if hybrid else 1,
            max_model_len=max_len,
            kv_cache_max_concurrency=1.0,
            kv_cache_size_tokens=max_len,
        ),
    )


def toy_scheduler(eos: Sequence[int] = (), **config: Any) -> Scheduler:
    """A scheduler over `toy_config(**config)`."""
    resolved = toy_config(**config)
    return Scheduler(resolved, plan_cache(resolved), eos)


def toy_request(request_id: str, prompt: Sequence[int], *, arrival: int = 0, **params: Any) -> Request:
    """A request; sampling parameters as keywords."""
    return Request(request_id, list(prompt), SamplingParams(**params), arrival)


def toy_engine(skip: Sequence[str] = (), eos: Sequence[int] = (), **config: Any) -> Engine:
    """A scheduler over `toy_config(**config)` with a toy worker."""
    resolved = toy_config(**config)
    layout = plan_cache(resolved)
    return make_engine(Scheduler(resolved, layout, eos), layout, VOCAB, skip)
