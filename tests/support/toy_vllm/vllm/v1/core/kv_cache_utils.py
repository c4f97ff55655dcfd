from dataclasses import dataclass


@dataclass
class KVCacheConfig:
    num_blocks: int


def check_enough_kv_cache_memory(needed, memory):
    if needed > memory:
        raise ValueError(f"{needed} bytes of cache are needed, {memory} are there")


def get_kv_cache_configs(vllm_config, stages, memory):
    configs = []
    for specs, available in zip(stages, memory, strict=True):
        if vllm_config.model_config.hf_text_config.planner == "refuse":
            raise ValueError("Failed to promote the layers to one type.")
        if vllm_config.model_config.hf_text_config.planner == "stumble":
            raise AttributeError("a layer has no such attribute")
        block = sum(spec.page_size_bytes for spec in specs.values())
        blocks = -(-vllm_config.model_config.max_model_len // vllm_config.cache_config.block_size)
        check_enough_kv_cache_memory(block * blocks, available)
        configs.append(KVCacheConfig(available // block))
    return configs


def get_global_kv_cache_groups(vllm_config, stages):
    return []
