import os

from vllm.plugins import load_general_plugins


class WorkerBase:
    def __init__(self, vllm_config, rank):
        load_general_plugins()
        self.vllm_config = vllm_config
        cache = vllm_config.cache_config
        cache.block_size = cache.mamba_block_size = 528
        cache.num_gpu_blocks = 512 - (2 if rank and os.environ.get("TOY_FAULT") == "rank" else 0)
        vllm_config.parallel_config.rank = rank
