"""Jamba: Mamba-1 layers with attention layers between, and MoE in some of both (Lieber et al. 2024).

Attention has no positions of its own; dt, B and C of the mixers are normed; the router's weights are not
renormalized. The saved layout has one tensor an expert (`JambaForCausalLM.save_pretrained`).
"""

import torch

from staticfire.engine.config.model import LayerInfo, ModelInfo
from staticfire.engine.errors import EngineError
from staticfire.engine.layers.attention import Attention
from staticfire.engine.layers.linear import Linear, row_parallel
from staticfire.engine.layers.mamba1 import Mamba1Mixer, Mamba1Weights
from staticfire.engine.layers.moe import SparseMoe
from staticfire.engine.loader.spec import TensorSpec
from staticfire.engine.loader.weights import Weights
from staticfire.engine.models.base import Decoder, DecoderLayer, FeedForward, Mixer, eps_of, head_specs, make_decoder
from staticfire.engine.models.parts import (
    attention_specs,
    local_heads,
    mlp_specs,
    take_attention_out,
    take_experts,
    take_mlp,
    take_qkv,
)
from staticfire.engine.parallel.base import Group
from staticfire.engine.parallel.split import part
from staticfire.engine.quantization.base import QuantizationMethod

FINAL_NORM = "model.final_layernorm.weight"


def _mamba_sizes(info: ModelInfo) -> tuple[int, int, int, int]:
    """(intermediate, state, convolution, dt rank); defaults as in `JambaConfig`."""
    hf = info.hf
    rank = hf.get("mamba_dt_rank", "auto")
    return (
        int(hf.get("mamba_expand", 2)) * info.hidden_size,
        int(hf.get("mamba_d_state", 16)),
        int(hf.get("mamba_d_conv", 4)),
        -(-info.hidden_size // 16) if rank == "auto" else int(rank),
    )


def _mamba_specs(info: ModelInfo, prefix: str) -> list[TensorSpec]:
    inner, state, conv, rank = _mamba_sizes(info)
    hidden = info.hidden_size
    specs = [
        TensorSpec(f"{prefix}.in_proj.weight", (2 * inner, hidden)),
        TensorSpec(f"{prefix}.conv1d.weight", (inner, 1, conv)),
        TensorSpec(f"{prefix}.x_proj.weight", (rank + 2 * state, inner)),
        TensorSpec(f"{prefix}.dt_layernorm.weight", (rank,), init="ones"),
        TensorSpec(f"{prefix}.b_layernorm.weight", (state,), init="ones"),
        TensorSpec(f"{prefix}.c_layernorm.weight", (state,), init="ones"),
        TensorSpec(f"{prefix}.dt_proj.weight", (inner, rank)),
        TensorSpec(f"{prefix}.dt_proj.bias", (inner,), init="dt_bias"),
        TensorSpec(f"{prefix}.A_log", (inner, state), init="a_log"),
        TensorSpec(f"{prefix}.D", (inner,), init="ones"),
        TensorSpec(f"{prefix}.out_proj.weight", (hidden, inner)),
    ]
    if info.hf.get("mamba_conv_bias", True):
        specs.append(TensorSpec(f"{prefix}.conv1d.bias", (inner,)))
    if info.hf.get("mamba_proj_bias", False):
        specs += [TensorSpec(f"{prefix}.in_proj.bias", (2 * inner,)), TensorSpec(f"{prefix}.out_proj.bias", (hidden,))]
    return specs


def tensor_specs(info: ModelInfo) -> list[TensorSpec]:
    """Every tensor of a saved Jamba.

    Raises:
        EngineError: `config.json` asks for another activation than SiLU, or for more experts a token than there are.
    """
    if info.num_experts_per_tok > info.num_experts:
        raise EngineError(
            f"config.json: num_experts_per_tok={info.num_experts_per_tok} is more than num_experts={info.num_experts}"
        )
    if info.hf.get("hidden_act", "silu") != "silu":
        raise EngineError(f"config.json: hidden_act={info.hf['hidden_act']!r} is not supported; the engine has 'silu'")
    specs = head_specs(info, FINAL_NORM)
    for number, layer in enumerate(info.layers):
        prefix = f"model.layers.{number}"
        for norm in ("input_layernorm", "pre_ff_layernorm"):
            specs.append(TensorSpec(f"{prefix}.{norm}.weight", (info.hidden_size,), init="ones"))
        if layer.mixer == "attention":
            specs += attention_specs(info, f"{prefix}.self_attn")
        else:
            specs += _mamba_specs(info, f"{prefix}.mamba")
        if layer.mlp == "moe":
            specs.append(TensorSpec(f"{prefix}.feed_forward.router.weight", (info.num_experts, info.hidden_size)))
            for expert in range(info.num_experts):
                specs += mlp_specs(info, f"{prefix}.feed_forward.experts.{expert}")
        else:
            specs += mlp_specs(info, f"{prefix}.feed_forward")
    return specs


def build(
    info: ModelInfo,
    weights: Weights,
    quantization: QuantizationMethod,
    max_len: int,  # noqa: ARG001 - no positions
    group: Group,
) -> Decoder:
    """Make this rank's part of a Jamba from its tensors."""
    layers = []
    for number, layer in enumerate(info.layers):
        prefix = f"model.layers.{number}"
        layers.append(
            DecoderLayer(
                weights.take(f"{prefix}.input_layernorm.weight"),
                _mixer(info, layer, weights, prefix, group),
                weights.take(f"{prefix}.pre_ff_layernorm.weight"),
                _feed_forward(info, layer, number, weights, quantization, group),
            )
        )
    return make_decoder(info, weights, FINAL_NORM, layers, group)


def _mixer(info: ModelInfo, layer: LayerInfo, weights: Weights, prefix: str, group: Group) -> Mixer:
    if layer.mixer == "attention":
        name = f"{prefix}.self_attn"
        qkv, out = take_qkv(info, weights, name, group), take_attention_out(info, weights, name, group)
        return Attention(qkv, out, local_heads(info, group), group=group)
    return take_mamba(info, weights, f"{prefix}.mamba", group)


def take_mamba(info: ModelInfo, weights: Weights, prefix: str, group: Group) -> Mamba1Mixer:
    """This rank's channels of the mixer under `prefix`.

    A, D and the bias of dt are kept in float32 at least: they are what the scan computes with. A and the
    convolution's weight lie in memory as [state, intermediate] and [width, intermediate], like the states they are
    multiplied with. dt, B and C come out of all channels: they are summed
    over the ranks before they are normed, so that every rank norms the same.
    """
    inner = _mamba_sizes(info)[0]
    rows, columns, halves = part(0, inner, group), part(1, inner, group), part(0, 2 * inner, group, stacked=2)
    wide = torch.promote_types(weights.dtype, torch.float32)
    conv_bias, proj_bias = info.hf.get("mamba_conv_bias", True), info.hf.get("mamba_proj_bias", False)
    in_bias = weights.take(f"{prefix}.in_proj.bias", halves) if proj_bias else None
    out_bias = weights.take(f"{prefix}.out_proj.bias") if proj_bias else None
    w = Mamba1Weights(
        in_proj=Linear(weights.take(f"{prefix}.in_proj.weight", halves), in_bias),
        conv=weights.take(f"{prefix}.conv1d.weight", rows).squeeze(1).t().contiguous().t(),
        conv_bias=weights.take(f"{prefix}.conv1d.bias", rows) if conv_bias else None,
        x_proj=row_parallel(weights.take(f"{prefix}.x_proj.weight", columns), None, group),
        norm=torch.cat([weights.take(f"{prefix}.{part}_layernorm.weight") for part in ("dt", "b", "c")]),
        dt_proj=Linear(weights.take(f"{prefix}.dt_proj.weight", rows)),
        dt_bias=weights.take(f"{prefix}.dt_proj.bias", rows).to(wide),
        a=-torch.exp(weights.take(f"{prefix}.A_log", rows).to(wide).t().contiguous()).t(),
        d=weights.take(f"{prefix}.D", rows).to(wide),
        out_proj=row_parallel(weights.take(f"{prefix}.out_proj.weight", columns), out_bias, group),
    )
    return Mamba1Mixer(w, eps_of(info))


def _feed_forward(
    info: ModelInfo, layer: LayerInfo, number: int, weights: Weights, quantization: QuantizationMethod, group: Group
) -> FeedForward:
    prefix = f"model.layers.{number}.feed_forward"
    if layer.mlp == "dense":
        return take_mlp(info, weights, prefix, group)
    names = [f"{prefix}.experts.{expert}" for expert in range(info.num_experts)]
    router = weights.take(f"{prefix}.router.weight")
    experts = take_experts(info, weights, names, quantization, group)
    return SparseMoe(number, router, experts, info.num_experts_per_tok, renormalize=False, group=group)
