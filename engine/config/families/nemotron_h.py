"""Nemotron-H: every layer is one thing - Mamba-2, attention, an MLP or routed experts. States are float32."""

from staticfire.engine.config.families.base import (
    Family,
    Parts,
    Reader,
    attention_parameters,
    embedding_parameters,
)
from staticfire.engine.config.families.mamba2 import checked, mamba2_parameters
from staticfire.engine.config.families.states import Mamba2State
from staticfire.engine.config.model import LayerInfo

LETTERS = {"M": "mamba", "*": "attention", "-": "mlp", "E": "moe"}
KINDS: dict[str, LayerInfo] = {
    "mamba": LayerInfo("mamba2", "none"),
    "linear_attention": LayerInfo("mamba2", "none"),
    "attention": LayerInfo("attention", "none"),
    "full_attention": LayerInfo("attention", "none"),
    "mlp": LayerInfo("none", "dense"),
    "moe": LayerInfo("none", "moe"),
}
STATE_DTYPES = ("bfloat16", "float16", "float32")


def read(reader: Reader) -> Parts:
    """Read a Nemotron-H `config.json`."""
    hidden = reader.size("hidden_size")
    layers = _layers(reader)
    state = checked(
        reader,
        Mamba2State(
            intermediate=reader.size("mamba_num_heads", 128) * reader.size("mamba_head_dim", 64),
            groups=reader.size("n_groups", 8),
            heads=reader.size("mamba_num_heads", 128),
            head_dim=reader.size("mamba_head_dim", 64),
            d_state=reader.size("ssm_state_size", 128),
            d_conv=reader.size("conv_kernel", 4),
        ),
        "n_groups",
    )
    recurrent = sum(layer.mixer == "mamba2" for layer in layers)
    attention = sum(layer.mixer == "attention" for layer in layers)
    dense, moe = (sum(layer.mlp == kind for layer in layers) for kind in ("dense", "moe"))
    experts = reader.size("n_routed_experts", 8) if moe else 0
    shared = 2 * hidden * reader.size("moe_shared_expert_intermediate_size", 1) * reader.size("n_shared_experts", 1)
    # Experts may work in a narrower space, with a projection into it and one back.
    width = reader.size("moe_latent_size", hidden)
    between = 2 * hidden * width if width != hidden else 0
    ssm_dtype, because = _ssm_dtype(reader)
    return Parts(
        layers=layers,
        states=state if recurrent else None,
        parameters=embedding_parameters(reader)
        + attention * attention_parameters(reader, reader.head_dim())
        + recurrent * mamba2_parameters(hidden, state)
        + (dense * 2 * hidden * reader.size("intermediate_size") if dense else 0)
        + (moe * (shared + hidden * experts + between) if moe else 0),
        expert_parameters=moe * experts * 2 * width * reader.size("moe_intermediate_size", 1),
        num_experts=experts,
        num_experts_per_tok=reader.size("num_experts_per_tok", 2) if moe else 0,
        head_dim=reader.head_dim(),
        ssm_dtype=ssm_dtype,
        ssm_dtype_because=because,
        chunk_size=reader.size("chunk_size", 128),
        mlp_widths=_widths(reader, dense=bool(dense), moe=bool(moe)),
        expert_width=reader.size("moe_intermediate_size", 1) if moe else 0,
    )


def _widths(reader: Reader, *, dense: bool, moe: bool) -> tuple[int, ...]:
    """Widths of the dense MLPs and of the expert that all tokens share."""
    plain = (reader.size("intermediate_size"),) if dense else ()
    return (*plain, reader.size("moe_shared_expert_intermediate_size", 1)) if moe else plain


def _layers(reader: Reader) -> tuple[LayerInfo, ...]:
    """From `hybrid_override_pattern` (one letter a layer) or `layers_block_type`."""
    pattern = reader.hf.get("hybrid_override_pattern")
    if isinstance(pattern, str) and pattern:
        unknown = sorted(set(pattern) - set(LETTERS))
        if unknown:
            reader.fault(
                "hybrid_override_pattern",
                f"config.json: hybrid_override_pattern holds {unknown}; known are {sorted(LETTERS)}",
                pattern,
            )
        declared = reader.hf.get("num_hidden_layers")
        if isinstance(declared, int) and declared != len(pattern):
            reader.fault(
                "hybrid_override_pattern",
                f"config.json: hybrid_override_pattern has {len(pattern)} letters for num_hidden_layers={declared}",
                pattern,
            )
        return tuple(KINDS[LETTERS.get(letter, "mamba")] for letter in pattern)
    key = "layer_types" if reader.hf.get("layer_types") is not None else "layers_block_type"
    listed = reader.names(key) or []
    kinds = reader.layer_types(len(listed), KINDS)
    if not kinds:
        reader.fault("hybrid_override_pattern", "config.json has neither hybrid_override_pattern nor layers_block_type")
        return (KINDS["mamba"],)
    return tuple(KINDS[kind] for kind in kinds)


def _ssm_dtype(reader: Reader) -> tuple[str, str]:
    declared = reader.hf.get("mamba_ssm_cache_dtype")
    if declared is None or declared == "auto":
        return "float32", "Nemotron-H keeps recurrent states in float32 unless told otherwise"
    if declared not in STATE_DTYPES:
        reader.fault(
            "mamba_ssm_cache_dtype",
            f"config.json: mamba_ssm_cache_dtype={declared!r} must be one of {', '.join(sorted(STATE_DTYPES))}",
            declared,
        )
        return "float32", ""
    return str(declared), "config.json declares mamba_ssm_cache_dtype"


FAMILY = Family(model_types=("nemotron_h",), architectures=("NemotronHForCausalLM",), read=read)
