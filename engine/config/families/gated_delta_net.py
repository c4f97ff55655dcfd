"""Qwen3-Next and Qwen3.5/3.6: gated delta net with full attention every few layers; dense or MoE."""

from staticfire.engine.config.families.base import (
    Family,
    Parts,
    Reader,
    attention_parameters,
    embedding_parameters,
)
from staticfire.engine.config.families.states import GatedDeltaNetState
from staticfire.engine.config.model import LayerInfo, MixerKind, MlpKind

KINDS: dict[str, MixerKind] = {"linear_attention": "gated_delta_net", "full_attention": "attention"}
STATE_DTYPES = ("bfloat16", "float16", "float32")
DEFAULT_HEAD_DIM = 256
MAMBA_CHUNK = 2048
"""Chunk that vLLM assumes where config.json declares none."""


def gated_delta_net_parameters(hidden: int, state: GatedDeltaNetState) -> int:
    """Weights of one mixer: q, k, v, z, a and b projections, conv, A, dt bias, norm, out projection."""
    keys, values = state.key_heads * state.key_head_dim, state.value_heads * state.value_head_dim
    projections = hidden * (2 * keys + 2 * values + 2 * state.value_heads) + values * hidden
    return projections + (2 * keys + values) * state.d_conv + 2 * state.value_heads + state.value_head_dim


def read(reader: Reader) -> Parts:
    """Read the text configuration of a Qwen3-Next or Qwen3.5 model."""
    count, hidden = reader.num_layers(), reader.size("hidden_size")
    period = reader.size("full_attention_interval", 4)
    kinds = reader.layer_types(count, KINDS) or [
        "linear_attention" if (i + 1) % period else "full_attention" for i in range(count)
    ]
    state = GatedDeltaNetState(
        key_heads=reader.size("linear_num_key_heads", 16),
        value_heads=reader.size("linear_num_value_heads", 32),
        key_head_dim=reader.size("linear_key_head_dim", 128),
        value_head_dim=reader.size("linear_value_head_dim", 128),
        d_conv=reader.size("linear_conv_kernel_dim", 4),
    )
    if state.value_heads % state.key_heads:
        reader.fault(
            "linear_num_value_heads",
            f"config.json: linear_num_value_heads={state.value_heads} is no multiple of "
            f"linear_num_key_heads={state.key_heads}",
            state.value_heads,
        )
    experts = reader.size("num_experts", 0, least=0)
    mlps = _mlps(reader, count, experts)
    layers = tuple(LayerInfo(KINDS[kind], mlp) for kind, mlp in zip(kinds, mlps, strict=True))
    attention, moe = sum(kind == "full_attention" for kind in kinds), mlps.count("moe")
    head_dim = reader.size("head_dim", DEFAULT_HEAD_DIM)
    shared_width = reader.size("shared_expert_intermediate_size", 0, least=0) if moe else 0
    dense_width = reader.size("intermediate_size") if moe < count else 0
    expert_width = reader.size("moe_intermediate_size", 512) if moe else 0
    ssm_dtype = _ssm_dtype(reader)
    return Parts(
        layers=layers,
        states=state if attention < count else None,
        parameters=embedding_parameters(reader)
        + attention * attention_parameters(reader, head_dim, gated=True)
        + (count - attention) * gated_delta_net_parameters(hidden, state)
        + (count - moe) * 3 * hidden * dense_width
        + moe * hidden * (3 * shared_width + experts),
        expert_parameters=moe * experts * 3 * hidden * expert_width,
        num_experts=experts if moe else 0,
        num_experts_per_tok=reader.size("num_experts_per_tok", 8) if moe else 0,
        head_dim=head_dim,
        ssm_dtype=ssm_dtype,
        ssm_dtype_because="config.json declares mamba_ssm_dtype" if ssm_dtype else None,
        chunk_size=MAMBA_CHUNK,
        mlp_widths=tuple(width for width in (dense_width, shared_width) if width),
        expert_width=expert_width,
    )


def _mlps(reader: Reader, count: int, experts: int) -> list[MlpKind]:
    """Which layers have routed experts: every `decoder_sparse_step`-th, less those in `mlp_only_layers`."""
    step = reader.size("decoder_sparse_step", 1)
    only = reader.hf.get("mlp_only_layers") or []
    if not isinstance(only, list | tuple):
        reader.fault("mlp_only_layers", f"config.json: mlp_only_layers={only!r} must be a list of layers", only)
        only = []
    return ["moe" if experts and i not in only and (i + 1) % step == 0 else "dense" for i in range(count)]


def _ssm_dtype(reader: Reader) -> str | None:
    declared = reader.hf.get("mamba_ssm_dtype")
    if declared is None or declared == "auto":
        return None
    if declared not in STATE_DTYPES:
        allowed = ", ".join(sorted(STATE_DTYPES))
        reader.fault("mamba_ssm_dtype", f"config.json: mamba_ssm_dtype={declared!r} must be one of {allowed}", declared)
        return None
    return str(declared)


FAMILY = Family(
    model_types=("qwen3_next", "qwen3_5", "qwen3_5_text", "qwen3_5_moe", "qwen3_5_moe_text"),
    architectures=(
        "Qwen3NextForCausalLM",
        "Qwen3_5ForConditionalGeneration",
        "Qwen3_5MoeForConditionalGeneration",
    ),
    read=read,
)
