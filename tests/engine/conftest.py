"""Tiny random checkpoints, made once a session by transformers itself; torch is imported only when one is asked for."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

JAMBA: dict[str, Any] = {
    "vocab_size": 512,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "attn_layer_period": 2,
    "attn_layer_offset": 1,
    "expert_layer_period": 3,
    "expert_layer_offset": 0,
    "num_experts": 4,
    "num_experts_per_tok": 2,
    "mamba_d_state": 8,
    "mamba_d_conv": 4,
    "mamba_expand": 2,
    "max_position_embeddings": 1024,
}
"""All four kinds of layer: Mamba + MoE, attention + MLP, Mamba + MLP, attention + MoE."""

LLAMA: dict[str, Any] = {
    "vocab_size": 512,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 1024,
}

QWEN3: dict[str, Any] = {**LLAMA, "head_dim": 32, "tie_word_embeddings": True, "rms_norm_eps": 1e-5}


GAINS = {"q_proj": 1.0, "k_proj": 1.0, "dt_proj": 1.0, "lm_head": 2.0}
"""Matrices with less than the gain of 3: with 3, rounding alone moves a logprob by more than 1e-4."""


def _randomize(model: Any) -> None:
    """Matrices with gain 3 and Mamba's step sizes, so that a lost state shows in the output."""
    import torch

    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("A_log"):
                continue
            if name.endswith("dt_proj.bias"):
                low, high = math.log(1e-3), math.log(1e-1)
                step = torch.exp(torch.rand(parameter.shape, generator=generator) * (high - low) + low)
                parameter.copy_(step + torch.log(-torch.expm1(-step)))
            elif "norm" in name:
                parameter.copy_(1 + 0.1 * torch.randn(parameter.shape, generator=generator))
            else:
                fan_in = parameter.shape[-1] if parameter.dim() > 1 else 64
                gain = next((gain for part, gain in GAINS.items() if part in name), 3.0)
                parameter.copy_(torch.randn(parameter.shape, generator=generator) * gain / math.sqrt(fan_in))


@pytest.fixture(scope="session")
def make_checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """(family, **config overrides) -> folder, with any keyword `save` handed to `save_pretrained`; made once each."""
    made: dict[str, Path] = {}

    def make(family: str, *, save: dict[str, Any] | None = None, **overrides: Any) -> Path:
        key = repr((family, sorted((save or {}).items()), sorted(overrides.items())))
        if key not in made:
            import transformers

            transformers.utils.logging.disable_progress_bar()
            base, name = {
                "jamba": (JAMBA, "Jamba"),
                "llama": (LLAMA, "Llama"),
                "qwen3": (QWEN3, "Qwen3"),
            }[family]
            config = getattr(transformers, f"{name}Config")(**{**base, **overrides})
            model = getattr(transformers, f"{name}ForCausalLM")(config)
            _randomize(model)
            folder = tmp_path_factory.mktemp(family)
            model.save_pretrained(folder, **(save or {}))
            made[key] = folder
        return made[key]

    return make


@pytest.fixture(scope="session")
def jamba(make_checkpoint: Callable[..., Path]) -> Path:
    """The tiny Jamba whose block sizes stay as typed (16, 32, 64)."""
    return make_checkpoint("jamba")


@pytest.fixture(scope="session")
def jamba_grow(make_checkpoint: Callable[..., Path]) -> Path:
    """A tiny Jamba whose state is larger than a block of 16 tokens: the block grows."""
    return make_checkpoint("jamba", mamba_d_state=16, num_attention_heads=8, num_key_value_heads=2)


@pytest.fixture(scope="session")
def llama(make_checkpoint: Callable[..., Path]) -> Path:
    """A tiny dense control."""
    return make_checkpoint("llama")
