"""Granite-4 hybrid: Mamba-2 and attention by `layer_types`, routed experts beside a shared MLP."""

from staticfire.engine.config.families.base import (
    Family,
    Parts,
    Reader,
    attention_parameters,
    embedding_parameters,
)
from staticfire.engine.config.families.mamba2 import mamba2_parameters, mamba2_state
from staticfire.engine.config.model import LayerInfo, MixerKind

KINDS: dict[str, MixerKind] = {
    "mamba": "mamba2",
    "linear_attention": "mamba2",
    "attention": "attention",
    "full_attention": "attention",
}


def read(reader: Reader) -> Parts:
    """Read a Granite-4 `config.json`."""
    count, hidden = reader.num_layers(), reader.size("hidden_size")
    kinds = reader.layer_types(count, KINDS) or ["mamba"] * count
    experts = reader.size("num_local_experts", 8, least=0)
    layers = tuple(LayerInfo(KINDS[kind], "moe" if experts else "dense") for kind in kinds)
    state, head_dim = mamba2_state(reader), reader.head_dim()
    attention = sum(layer.mixer == "attention" for layer in layers)
    shared = 3 * hidden * reader.size("shared_intermediate_size", 1024)
    expert = 3 * hidden * reader.size("intermediate_size")
    return Parts(
        layers=layers,
        states=state if attention < count else None,
        parameters=embedding_parameters(reader)
        + attention * attention_parameters(reader, head_dim)
        + (count - attention) * mamba2_parameters(hidden, state)
        + count * (shared + hidden * experts),
        expert_parameters=count * experts * expert,
        num_experts=experts,
        num_experts_per_tok=reader.size("num_experts_per_tok", 2) if experts else 0,
        head_dim=head_dim,
        chunk_size=reader.size("mamba_chunk_size", 256),
        mlp_widths=(reader.size("shared_intermediate_size", 1024),),
        expert_width=reader.size("intermediate_size") if experts else 0,
    )


FAMILY = Family(model_types=("granitemoehybrid",), architectures=("GraniteMoeHybridForCausalLM",), read=read)
