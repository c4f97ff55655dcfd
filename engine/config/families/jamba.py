"""Jamba: Mamba-1 and attention by period, MoE by another period."""

from staticfire.engine.config.families.base import (
    Family,
    Parts,
    Reader,
    attention_parameters,
    embedding_parameters,
)
from staticfire.engine.config.families.states import Mamba1State
from staticfire.engine.config.model import LayerInfo

MAMBA1_CHUNK = 2048
"""Chunk that vLLM assumes for Mamba-1, whose config.json declares none."""


def mamba1_parameters(hidden: int, state: Mamba1State, dt_rank: int) -> int:
    """Weights of one Mamba-1 mixer: in, conv, x, dt and out projections, A and D."""
    inner, n = state.intermediate, state.d_state
    projections = hidden * 2 * inner + inner * (dt_rank + 2 * n) + dt_rank * inner + inner * hidden
    return projections + inner * (state.d_conv + n + 3)


def read(reader: Reader) -> Parts:
    """Read a Jamba `config.json`."""
    count, hidden = reader.num_layers(), reader.size("hidden_size")
    attention_period = reader.size("attn_layer_period", 8)
    attention_offset = reader.size("attn_layer_offset", 4, least=0)
    expert_period = reader.size("expert_layer_period", 2)
    expert_offset = reader.size("expert_layer_offset", 1, least=0)
    experts = reader.size("num_experts", 16)
    for name, offset, period in (
        ("attn_layer", attention_offset, attention_period),
        ("expert_layer", expert_offset, expert_period),
    ):
        if offset >= period:
            reader.fault(
                f"{name}_offset", f"config.json: {name}_offset={offset} must be below {name}_period={period}", offset
            )
    layers = tuple(
        LayerInfo(
            "attention" if i % attention_period == attention_offset else "mamba1",
            "moe" if experts > 1 and i % expert_period == expert_offset else "dense",
        )
        for i in range(count)
    )
    state = Mamba1State(
        reader.size("mamba_expand", 2) * hidden, reader.size("mamba_d_state", 16), reader.size("mamba_d_conv", 4)
    )
    rank = reader.hf.get("mamba_dt_rank", "auto")
    dt_rank = -(-hidden // 16) if rank is None or rank == "auto" else reader.size("mamba_dt_rank")
    head_dim, expert = reader.head_dim(), 3 * hidden * reader.size("intermediate_size")
    attention = sum(layer.mixer == "attention" for layer in layers)
    moe = sum(layer.mlp == "moe" for layer in layers)
    return Parts(
        layers=layers,
        states=state if attention < count else None,
        parameters=embedding_parameters(reader)
        + attention * attention_parameters(reader, head_dim)
        + (count - attention) * mamba1_parameters(hidden, state, dt_rank)
        + (count - moe) * expert
        + moe * hidden * experts,
        expert_parameters=moe * experts * expert,
        num_experts=experts if moe else 0,
        num_experts_per_tok=reader.size("num_experts_per_tok", 2) if moe else 0,
        head_dim=head_dim,
        chunk_size=MAMBA1_CHUNK,
        mlp_widths=(reader.size("intermediate_size"),) if moe < count else (),
        expert_width=reader.size("intermediate_size") if moe else 0,
    )


FAMILY = Family(model_types=("jamba",), architectures=("JambaForCausalLM",), read=read)
