"""Llama and dense Qwen3: attention with rotary positions and a gated MLP in every layer."""

from typing import Any

from staticfire.engine.config.model import ModelInfo
from staticfire.engine.errors import EngineError
from staticfire.engine.layers.attention import Attention
from staticfire.engine.layers.rotary import cos_sin_table, rope_theta
from staticfire.engine.loader.spec import TensorSpec
from staticfire.engine.loader.weights import Weights
from staticfire.engine.models.base import Decoder, DecoderLayer, eps_of, head_specs, make_decoder
from staticfire.engine.models.parts import (
    attention_specs,
    local_heads,
    mlp_specs,
    take_attention_out,
    take_mlp,
    take_qkv,
)
from staticfire.engine.parallel.base import Group
from staticfire.engine.quantization.base import QuantizationMethod

FINAL_NORM = "model.norm.weight"
QK_NORM = frozenset({"Qwen3ForCausalLM"})
"""Architectures that norm every query and key head."""


def _biases(info: ModelInfo) -> tuple[bool, bool]:
    """Whether q, k, v and whether o have a bias: `attention_bias` governs both in Llama and in Qwen3."""
    bias = bool(info.hf.get("attention_bias", False))
    return bias, bias


def _qk_norm(info: ModelInfo) -> bool:
    return info.architecture in QK_NORM


def tensor_specs(info: ModelInfo) -> list[TensorSpec]:
    """Every tensor of a saved Llama or Qwen3; rotary frequencies that old checkpoints carry are ignored.

    Raises:
        EngineError: `config.json` asks for something this family does not have here.
    """
    _refuse(info)
    specs = head_specs(info, FINAL_NORM)
    qkv_bias, out_bias = _biases(info)
    for number in range(len(info.layers)):
        prefix = f"model.layers.{number}"
        attention = f"{prefix}.self_attn"
        for norm in ("input_layernorm", "post_attention_layernorm"):
            specs.append(TensorSpec(f"{prefix}.{norm}.weight", (info.hidden_size,), init="ones"))
        specs += attention_specs(info, attention, qkv_bias=qkv_bias, out_bias=out_bias)
        specs += mlp_specs(info, f"{prefix}.mlp")
        if _qk_norm(info):
            specs += [TensorSpec(f"{attention}.{x}_norm.weight", (info.head_dim,), init="ones") for x in "qk"]
        specs.append(TensorSpec(f"{attention}.rotary_emb.inv_freq", (info.head_dim // 2,), presence="ignored"))
    return specs


def build(
    info: ModelInfo,
    weights: Weights,
    quantization: QuantizationMethod,  # noqa: ARG001 - no experts
    max_len: int,
    group: Group,
) -> Decoder:
    """Make this rank's part of the model from its tensors."""
    theta = rope_theta(info.hf)
    cos_sin = cos_sin_table(theta, info.head_dim, max_len, weights.dtype)
    qkv_bias, out_bias = _biases(info)
    layers = []
    for number in range(len(info.layers)):
        prefix = f"model.layers.{number}"
        name = f"{prefix}.self_attn"
        norms = [weights.take(f"{name}.{x}_norm.weight") for x in "qk"] if _qk_norm(info) else None
        attention = Attention(
            take_qkv(info, weights, name, group),
            take_attention_out(info, weights, name, group),
            local_heads(info, group),
            cos_sin=cos_sin,
            qkv_bias=take_qkv(info, weights, name, group, "bias") if qkv_bias else None,
            out_bias=weights.take(f"{name}.o_proj.bias") if out_bias else None,
            qk_norm=(norms[0], norms[1], eps_of(info)) if norms else None,
            group=group,
        )
        layers.append(
            DecoderLayer(
                weights.take(f"{prefix}.input_layernorm.weight"),
                attention,
                weights.take(f"{prefix}.post_attention_layernorm.weight"),
                take_mlp(info, weights, f"{prefix}.mlp", group),
            )
        )
    return make_decoder(info, weights, FINAL_NORM, layers, group)


def _refuse(info: ModelInfo) -> None:
    """Raise for options of `config.json` that would change the mathematics unnoticed."""
    wanted: dict[str, Any] = {"hidden_act": "silu", "mlp_bias": False, "use_sliding_window": False}
    faults = [
        f"{name}={info.hf[name]!r} is not supported; the engine has {value!r}"
        for name, value in wanted.items()
        if info.hf.get(name) not in (None, value)
    ]
    if faults:
        raise EngineError(f"config.json: {'; '.join(faults)}")
