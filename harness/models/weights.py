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
GAINS = {
    # With 3 on queries and keys the softmax is a hard choice, and float32 rounding reaches 7e-4 in a logprob.
    "q_proj": 1.0,
    "k_proj": 1.0,
    # A larger weight would drown the bias, which alone spreads the time steps.
    "dt_proj": 1.0,
    # Logits of this deviation: top-1 margins of about 0.45, float32 against float64 within 5e-5.
    "lm_head": 2.0,
}
"""Matrices that do not follow the model file's gain."""


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
    parent, leaf = name.rsplit(".", 2)[-2:]
    noise = torch.randn(like.shape, generator=generator)
    match parent, leaf:
        case _, "A_log":  # S4D-real: A = -1, -2, ..., -N in every channel
            return torch.log(torch.arange(1, like.shape[1] + 1).float()).expand_as(like)
        case _, "D":
            return torch.ones_like(like)
        case "dt_proj", "bias":
            log_dt = math.log(DT_MIN) + torch.rand(like.shape, generator=generator) * math.log(DT_MAX / DT_MIN)
            dt = torch.exp(log_dt)
            return dt + torch.log(-torch.expm1(-dt))  # softplus of this is dt
        case "embed_tokens", _:
            return noise
        case _, "bias":
            return noise * NORM_NOISE
        case _ if like.dim() == 1:  # the weight of a norm
            return 1 + noise * NORM_NOISE
        case _:
            return noise * GAINS.get(parent, gain) / math.sqrt(like.shape[-1])
