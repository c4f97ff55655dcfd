"""Weights of a tiny model, drawn so that a fault in the recurrent state or the cache shows in the tokens.

With the usual initialisation (standard deviation 0.02) a two-layer state hardly moves the logits: zeroing it changes
nothing that a test could see. So matrices have the gain of the model file, and Mamba's time step is drawn as its
authors draw it: log-uniform in [1e-3, 1e-1], stored through the inverse of softplus (Gu & Dao 2023, section 3.6).
"""

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from transformers import CONFIG_MAPPING, AutoModelForCausalLM, GenerationConfig, PreTrainedModel

from staticfire.harness.models.catalog import Tiny

DT_MIN, DT_MAX = 1e-3, 1e-1
NORM_NOISE = 0.1
SCORE_GAIN = 1.0
"""Queries and keys: with 3 on both sides the softmax is a hard choice, and float32 rounding reaches 7e-4 in a logprob."""
HEAD_GAIN = 2.0
"""Logits with this standard deviation: top-1 margins of about 0.45, float32 against float64 within 3e-5."""


def build(config: Mapping[str, Any], tiny: Tiny) -> PreTrainedModel:
    """Build a model in float32 and draw its weights from the seed.

    Args:
        config: The Hugging Face configuration.
        tiny: Seed and gain.

    Returns:
        The model, ready for `save_pretrained`.
    """
    values = {key: value for key, value in config.items() if key != "model_type"}
    hf_config = CONFIG_MAPPING[config["model_type"]].from_dict(values)
    # transformers draws its own weights first; keep that from moving the caller's random state.
    with torch.random.fork_rng(devices=[]):
        model = AutoModelForCausalLM.from_config(hf_config, dtype=torch.float32)
    generator = torch.Generator().manual_seed(tiny.seed)
    with torch.no_grad():
        for name, parameter in sorted(model.named_parameters()):
            parameter.copy_(_draw(name, parameter, tiny.gain, generator))
    model.generation_config = GenerationConfig.from_model_config(hf_config)
    return model.eval()


def _draw(name: str, like: Tensor, gain: float, generator: torch.Generator) -> Tensor:
    """Draw one parameter; what it is follows from its name and shape."""
    leaf = name.rsplit(".", 2)[-2:]
    noise = torch.randn(like.shape, generator=generator)
    match leaf:
        case [_, "A_log"]:  # S4D-real: A = -1, -2, ..., -N in every channel
            return torch.log(torch.arange(1, like.shape[1] + 1).float()).expand_as(like)
        case [_, "D"]:
            return torch.ones_like(like)
        case ["dt_proj", "bias"]:
            log_dt = math.log(DT_MIN) + torch.rand(like.shape, generator=generator) * math.log(DT_MAX / DT_MIN)
            dt = torch.exp(log_dt)
            return dt + torch.log(-torch.expm1(-dt))  # softplus of this is dt
        case ["dt_proj", "weight"]:
            return noise / math.sqrt(like.shape[-1])
        case ["conv1d", "weight"]:
            return noise * gain / math.sqrt(like.shape[-1])
        case [_, "bias"]:
            return noise * NORM_NOISE
        case ["embed_tokens", "weight"]:
            return noise
        case ["q_proj" | "k_proj", "weight"]:
            return noise * SCORE_GAIN / math.sqrt(like.shape[-1])
        case ["lm_head", "weight"]:
            return noise * HEAD_GAIN / math.sqrt(like.shape[-1])
        case [_, "weight"] if like.dim() == 1:  # a norm
            return 1 + noise * NORM_NOISE
        case _:
            return noise * gain / math.sqrt(like.shape[-1])
