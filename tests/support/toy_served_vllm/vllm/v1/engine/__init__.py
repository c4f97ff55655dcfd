import os
from dataclasses import dataclass, make_dataclass


@dataclass
class _Whole:
    max_model_len: int
    num_gpu_blocks: int
    block_size: int
    mamba_block_size: int | None = None


EngineCoreReadyResponse = _Whole
if os.environ.get("TOY_FAULT") == "stale":
    EngineCoreReadyResponse = make_dataclass(
        "EngineCoreReadyResponse", [("max_model_len", int), ("num_gpu_blocks", int), ("block_size", int)]
    )
