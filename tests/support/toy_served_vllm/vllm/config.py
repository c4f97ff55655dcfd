from dataclasses import dataclass, field
from enum import Enum


class Policy(Enum):
    FCFS = "fcfs"


def _show(self):
    return "torch.bfloat16"


dtype = type("dtype", (), {"__str__": _show})


@dataclass
class CacheConfig:
    block_size: int = 16
    mamba_block_size: int | None = None
    num_gpu_blocks: int | None = None
    cache_dtype: str = "auto"
    _block_size_resolved: bool = False


@dataclass
class ModelConfig:
    model: str = ""
    max_model_len: int = 2048
    dtype: object = field(default_factory=dtype)
    hf_config: dict = field(default_factory=dict)


@dataclass
class SchedulerConfig:
    policy: Policy = Policy.FCFS


@dataclass
class ParallelConfig:
    tensor_parallel_size: int = 1
    rank: int = 0


@dataclass
class VllmConfig:
    cache_config: CacheConfig = field(default_factory=CacheConfig)
    model_config: ModelConfig = field(default_factory=ModelConfig)
    scheduler_config: SchedulerConfig = field(default_factory=SchedulerConfig)
    parallel_config: ParallelConfig = field(default_factory=ParallelConfig)
