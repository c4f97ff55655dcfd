"""Cosines and sines of rotary position embeddings, as Hugging Face computes them."""

from collections.abc import Mapping
from typing import Any

import torch

from staticfire.engine.errors import EngineError


def rope_theta(hf: Mapping[str, Any]) -> float:
    """Read the base of the frequencies from a `config.json`, in its old or its new place.

    Raises:
        EngineError: The checkpoint asks for a scaled kind of rotary embedding, which the engine does not have.
    """
    parameters = hf.get("rope_parameters") or hf.get("rope_scaling") or {}
    kind = parameters.get("rope_type", parameters.get("type", "default"))
    if kind != "default":
        raise EngineError(f"config.json: rope_type={kind!r} is not supported; the engine has 'default' only")
    return float(parameters.get("rope_theta", hf.get("rope_theta", 10000.0)))


def cos_sin_table(theta: float, head_dim: int, length: int, dtype: torch.dtype) -> torch.Tensor:
    """Table [length, head_dim]: cosines of position * frequency in the first half, sines in the second.

    Angles are computed in float32 as in Hugging Face (`LlamaRotaryEmbedding`), in float64 for a float64 engine.
    """
    angles_in = torch.float64 if dtype == torch.float64 else torch.float32
    exponents = torch.arange(0, head_dim, 2, dtype=angles_in) / head_dim
    frequencies = 1.0 / (theta**exponents)
    angles = torch.arange(length, dtype=angles_in)[:, None] * frequencies
    return torch.cat((angles.cos(), angles.sin()), dim=-1).to(dtype)
