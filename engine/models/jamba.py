"""Jamba: Mamba-1 layers with attention layers between, and MoE in some of both (Lieber et al. 2024).

Attention has no positions of its own; dt, B and C of the mixers are normed; the router's weights are not
renormalized. The saved layout has one tensor an expert (`JambaForCausalLM.save_pretrained`).
"""

import torch

from staticfire.engine.config.model import LayerInfo, ModelInfo
from staticfire.engine.errors import EngineError
from staticfire.engine.layers.attention import Attention
from staticfire.engine.layers.linear import Linear
from staticfire.engine.layers.mamba1 import Mamba1Mixer, Mamba1Weights
from staticfire.engine.layers.moe import SparseMoe
from staticfire.engine.loader.spec import TensorSpec
from staticfire.engine.loader.weights import Weights
from staticfire.engine.models.base import Decoder, DecoderLayer, FeedForward, Mixer, eps_of, head_specs, make_decoder
from staticfire.engine.models.parts import (
    attention_specs,
    mlp_specs,
    take_gate_up,
    take_mlp,
    take_qkv,
)
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
        EngineError: `config.json` asks for another activation than SiLU.
    """
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


def build(info: ModelInfo, weights: Weights, quantization: QuantizationMethod, max_len: int) -> Decoder:  # noqa: ARG001 - no positions
    """Make a Jamba from its tensors."""
    layers = []
    for number, layer in enumerate(info.layers):
        prefix = f"model.layers.{number}"
        layers.append(
            DecoderLayer(
                weights.take(f"{prefix}.input_layernorm.weight"),
                _mixer(info, layer, weights, prefix),
                weights.take(f"{prefix}.pre_ff_layernorm.weight"),
                _feed_forward(info, layer, number, weights, quantization),
            )
        )
    return make_decoder(info, weights, FINAL_NORM, layers)


def _mixer(info: ModelInfo, layer: LayerInfo, weights: Weights, prefix: str) -> Mixer:
    if layer.mixer == "attention":
        name = f"{prefix}.self_attn"
        heads = (info.num_attention_heads, info.num_kv_heads, info.head_dim)
        return Attention(take_qkv(weights, name), weights.take(f"{name}.o_proj.weight"), heads)
    return _take_mamba(info, weights, f"{prefix}.mamba")


def _take_mamba(info: ModelInfo, weights: Weights, prefix: str) -> Mamba1Mixer:
    """A, D and the bias of dt are kept in float32 at least: they are what the scan computes with.

    A lies in memory as [state, intermediate], like the states it is multiplied with.
    """
    wide = torch.promote_types(weights.dtype, torch.float32)
    conv_bias, proj_bias = info.hf.get("mamba_conv_bias", True), info.hf.get("mamba_proj_bias", False)
    in_bias = weights.take(f"{prefix}.in_proj.bias") if proj_bias else None
    out_bias = weights.take(f"{prefix}.out_proj.bias") if proj_bias else None
    w = Mamba1Weights(
        in_proj=Linear(weights.take(f"{prefix}.in_proj.weight"), in_bias),
        conv=weights.take(f"{prefix}.conv1d.weight").squeeze(1),
        conv_bias=weights.take(f"{prefix}.conv1d.bias") if conv_bias else None,
        x_proj=Linear(weights.take(f"{prefix}.x_proj.weight")),
        dt_norm=weights.take(f"{prefix}.dt_layernorm.weight"),
        b_norm=weights.take(f"{prefix}.b_layernorm.weight"),
        c_norm=weights.take(f"{prefix}.c_layernorm.weight"),
        dt_proj=Linear(weights.take(f"{prefix}.dt_proj.weight")),
        dt_bias=weights.take(f"{prefix}.dt_proj.bias").to(wide),
        a=-torch.exp(weights.take(f"{prefix}.A_log").to(wide).t().contiguous()).t(),
        d=weights.take(f"{prefix}.D").to(wide),
        out_proj=Linear(weights.take(f"{prefix}.out_proj.weight"), out_bias),
    )
    return Mamba1Mixer(w, eps_of(info))


def _feed_forward(
    info: ModelInfo, layer: LayerInfo, number: int, weights: Weights, quantization: QuantizationMethod
) -> FeedForward:
    prefix = f"model.layers.{number}.feed_forward"
    if layer.mlp == "dense":
        return take_mlp(weights, prefix)
    names = [f"{prefix}.experts.{expert}" for expert in range(info.num_experts)]
    router = weights.take(f"{prefix}.router.weight")
    experts = quantization.experts(
        torch.stack([take_gate_up(weights, name) for name in names]),
        torch.stack([weights.take(f"{name}.down_proj.weight") for name in names]),
    )
    return SparseMoe(number, router, experts, info.num_experts_per_tok, renormalize=False)
