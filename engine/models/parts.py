"""Pieces that families share: the saved names of attention, MLP and experts, how they are fused, and how split."""

from collections.abc import Sequence

import torch

from staticfire.engine.config.model import ModelInfo
from staticfire.engine.layers.mlp import GatedMlp
from staticfire.engine.loader.spec import TensorSpec
from staticfire.engine.loader.weights import Weights
from staticfire.engine.parallel.base import Group
from staticfire.engine.parallel.single import SINGLE
from staticfire.engine.parallel.split import Heads, heads, kv_part, part
from staticfire.engine.quantization.base import ExpertWeights, QuantizationMethod, split_experts


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


def local_heads(info: ModelInfo, group: Group) -> Heads:
    """This rank's attention heads."""
    return heads(info.num_attention_heads, info.num_kv_heads, info.head_dim, group)


def take_qkv(info: ModelInfo, weights: Weights, prefix: str, group: Group, kind: str = "weight") -> torch.Tensor:
    """The three projections of this rank's heads in one matrix (or bias): queries, keys, values."""
    queries = part(0, info.num_attention_heads * info.head_dim, group)
    keys = kv_part(info.num_kv_heads, info.head_dim, group)
    parts = {"q": queries, "k": keys, "v": keys}
    return torch.cat([weights.take(f"{prefix}.{name}_proj.{kind}", mine) for name, mine in parts.items()])


def take_attention_out(info: ModelInfo, weights: Weights, prefix: str, group: Group) -> torch.Tensor:
    """The output projection of this rank's heads."""
    return weights.take(f"{prefix}.o_proj.weight", part(1, info.num_attention_heads * info.head_dim, group))


def mlp_specs(info: ModelInfo, prefix: str) -> list[TensorSpec]:
    """gate, up and down projections under `prefix`."""
    hidden, inner = info.hidden_size, _inner(info)
    return [
        TensorSpec(f"{prefix}.gate_proj.weight", (inner, hidden)),
        TensorSpec(f"{prefix}.up_proj.weight", (inner, hidden)),
        TensorSpec(f"{prefix}.down_proj.weight", (hidden, inner)),
    ]


def _inner(info: ModelInfo) -> int:
    return int(info.hf["intermediate_size"])


def _take_gate_up(info: ModelInfo, weights: Weights, prefix: str, group: Group) -> torch.Tensor:
    """Gate and up of this rank's inner columns in one matrix, gate rows first."""
    mine = part(0, _inner(info), group)
    return torch.cat([weights.take(f"{prefix}.{name}_proj.weight", mine) for name in ("gate", "up")])


def _take_down(info: ModelInfo, weights: Weights, prefix: str, group: Group) -> torch.Tensor:
    return weights.take(f"{prefix}.down_proj.weight", part(1, _inner(info), group))


def take_mlp(info: ModelInfo, weights: Weights, prefix: str, group: Group) -> GatedMlp:
    """The tensors of `mlp_specs` as a layer."""
    return GatedMlp(_take_gate_up(info, weights, prefix, group), _take_down(info, weights, prefix, group), group)


def take_experts(
    info: ModelInfo, weights: Weights, prefixes: Sequence[str], quantization: QuantizationMethod, group: Group
) -> ExpertWeights:
    """The experts under `prefixes`, each with the tensors of `mlp_specs`, quantized: this rank's inner columns."""
    read_by = SINGLE if quantization.needs_whole_rows else group
    experts = quantization.experts(
        torch.stack([_take_gate_up(info, weights, prefix, read_by) for prefix in prefixes]),
        torch.stack([_take_down(info, weights, prefix, read_by) for prefix in prefixes]),
    )
    return experts if read_by is group else split_experts(experts, group)
