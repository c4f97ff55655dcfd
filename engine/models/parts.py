"""Pieces that families share: the saved names of attention and MLP, and how they are fused."""

import torch

from staticfire.engine.config.model import ModelInfo
from staticfire.engine.layers.mlp import GatedMlp
from staticfire.engine.loader.spec import TensorSpec
from staticfire.engine.loader.weights import Weights


def attention_specs(
    info: ModelInfo, prefix: str, *, qkv_bias: bool = False, out_bias: bool = False
) -> list[TensorSpec]:
    """q, k, v and o projections under `prefix`, saved apart."""
    hidden, head = info.hidden_size, info.head_dim
    rows = {"q": info.num_attention_heads * head, "k": info.num_kv_heads * head, "v": info.num_kv_heads * head}
    specs = [TensorSpec(f"{prefix}.{name}_proj.weight", (size, hidden)) for name, size in rows.items()]
    specs.append(TensorSpec(f"{prefix}.o_proj.weight", (hidden, rows["q"])))
    if qkv_bias:
        specs += [TensorSpec(f"{prefix}.{name}_proj.bias", (size,)) for name, size in rows.items()]
    if out_bias:
        specs.append(TensorSpec(f"{prefix}.o_proj.bias", (hidden,)))
    return specs


def take_qkv(weights: Weights, prefix: str, kind: str = "weight") -> torch.Tensor:
    """The three projections in one matrix (or bias): queries, keys, values."""
    return torch.cat([weights.take(f"{prefix}.{name}_proj.{kind}") for name in "qkv"])


def mlp_specs(info: ModelInfo, prefix: str) -> list[TensorSpec]:
    """gate, up and down projections under `prefix`."""
    hidden, inner = info.hidden_size, int(info.hf["intermediate_size"])
    return [
        TensorSpec(f"{prefix}.gate_proj.weight", (inner, hidden)),
        TensorSpec(f"{prefix}.up_proj.weight", (inner, hidden)),
        TensorSpec(f"{prefix}.down_proj.weight", (hidden, inner)),
    ]


def take_gate_up(weights: Weights, prefix: str) -> torch.Tensor:
    """Gate and up in one matrix, gate rows first."""
    return torch.cat([weights.take(f"{prefix}.{name}_proj.weight") for name in ("gate", "up")])


def take_mlp(weights: Weights, prefix: str) -> GatedMlp:
    """The tensors of `mlp_specs` as a layer."""
    return GatedMlp(take_gate_up(weights, prefix), weights.take(f"{prefix}.down_proj.weight"))
