"""Small models and devices that the examples of the rules are about. Facts of nothing real."""

from functools import cache
from typing import Any, Final

from staticfire.engine.config.device import CPU, Device
from staticfire.engine.config.model import ModelInfo
from staticfire.engine.config.reader import model_info

_LLAMA: Final[dict[str, Any]] = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "num_hidden_layers": 4,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_attention_heads": 8,
    "num_key_value_heads": 8,
    "vocab_size": 512,
    "max_position_embeddings": 2048,
    "torch_dtype": "float16",
}
_JAMBA: Final[dict[str, Any]] = {
    "model_type": "jamba",
    "architectures": ["JambaForCausalLM"],
    "num_hidden_layers": 4,
    "attn_layer_period": 4,
    "attn_layer_offset": 2,
    "expert_layer_period": 2,
    "expert_layer_offset": 1,
    "num_experts": 4,
    "num_experts_per_tok": 2,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_attention_heads": 8,
    "num_key_value_heads": 8,
    "mamba_d_state": 8,
    "mamba_d_conv": 4,
    "mamba_expand": 2,
    "vocab_size": 512,
    "max_position_embeddings": 2048,
    "torch_dtype": "bfloat16",
}
_BAMBA: Final[dict[str, Any]] = {
    "model_type": "bamba",
    "architectures": ["BambaForCausalLM"],
    "num_hidden_layers": 4,
    "attn_layer_indices": [2],
    "hidden_size": 96,
    "intermediate_size": 128,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 16,
    "mamba_n_heads": 12,
    "mamba_d_head": 16,
    "mamba_n_groups": 1,
    "mamba_d_state": 16,
    "mamba_d_conv": 4,
    "mamba_expand": 2,
    "vocab_size": 512,
    "max_position_embeddings": 2048,
    "torch_dtype": "bfloat16",
}
_QWEN3_NEXT: Final[dict[str, Any]] = {
    "model_type": "qwen3_next",
    "architectures": ["Qwen3NextForCausalLM"],
    "num_hidden_layers": 4,
    "full_attention_interval": 4,
    "hidden_size": 64,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "linear_num_key_heads": 4,
    "linear_num_value_heads": 8,
    "linear_key_head_dim": 16,
    "linear_value_head_dim": 16,
    "linear_conv_kernel_dim": 4,
    "num_experts": 8,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 32,
    "shared_expert_intermediate_size": 32,
    "intermediate_size": 128,
    "vocab_size": 512,
    "max_position_embeddings": 2048,
    "torch_dtype": "bfloat16",
}
_MAMBA: Final[dict[str, Any]] = {
    "model_type": "mamba",
    "architectures": ["MambaForCausalLM"],
    "num_hidden_layers": 4,
    "hidden_size": 64,
    "state_size": 8,
    "conv_kernel": 4,
    "expand": 2,
    "vocab_size": 512,
    "torch_dtype": "float32",
}

MODELS: Final[dict[str, dict[str, Any]]] = {
    "llama": _LLAMA,
    "llama-kv6": {**_LLAMA, "num_attention_heads": 12, "num_key_value_heads": 6, "head_dim": 8},
    "llama-width100": {**_LLAMA, "intermediate_size": 100},
    "llama-fp8": {**_LLAMA, "quantization_config": {"quant_method": "fp8"}},
    "jamba": _JAMBA,
    "jamba-grow": {**_JAMBA, "num_key_value_heads": 2, "mamba_d_state": 16},
    "jamba-width132": {**_JAMBA, "hidden_size": 66, "head_dim": 8},
    "mamba": _MAMBA,
    "bamba": _BAMBA,
    "bamba-heads6": {**_BAMBA, "mamba_n_heads": 6, "mamba_d_head": 32},
    "bamba-groups3": {**_BAMBA, "mamba_n_groups": 3},
    "qwen3-next": _QWEN3_NEXT,
    "qwen3-next-keys3": {**_QWEN3_NEXT, "linear_num_key_heads": 3, "linear_num_value_heads": 6},
}
"""Name -> `config.json` of a model small enough for any machine."""

DEVICES: Final[dict[str, Device]] = {
    "cpu": CPU,
    "volta": Device("volta", "cuda", 16 * 2**30, (7, 0)),
    "ampere": Device("ampere", "cuda", 80 * 2**30, (8, 0)),
    "thimble": Device("thimble", "cuda", 900_000, (9, 0)),
}
"""Name -> device; `thimble` is too small for one rank of `jamba`."""


@cache
def example_model(name: str) -> ModelInfo:
    """Read one of `MODELS`."""
    return model_info(MODELS[name], name)
