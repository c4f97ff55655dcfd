"""Bamba: Mamba-2 with attention at listed layers, a dense MLP after each."""

from staticfire.engine.config.families.base import (
    Family,
    Parts,
    Reader,
    attention_parameters,
    embedding_parameters,
)
from staticfire.engine.config.families.mamba2 import mamba2_parameters, mamba2_state
from staticfire.engine.config.model import LayerInfo


def read(reader: Reader) -> Parts:
    """Read a Bamba `config.json`."""
    count, hidden = reader.num_layers(), reader.size("hidden_size")
    listed = reader.hf.get("attn_layer_indices") or []
    if not isinstance(listed, list | tuple) or not all(
        isinstance(i, int) and not isinstance(i, bool) and 0 <= i < count for i in listed
    ):
        reader.fault(
            "attn_layer_indices",
            f"config.json: attn_layer_indices={listed!r} must list layers from 0 to {count - 1}",
            listed,
        )
        listed = []
    state, head_dim = mamba2_state(reader), reader.head_dim()
    attention = len(set(listed))
    mlp = 3 * hidden * reader.size("intermediate_size")
    return Parts(
        layers=tuple(LayerInfo("attention" if i in listed else "mamba2", "dense") for i in range(count)),
        states=state if attention < count else None,
        parameters=embedding_parameters(reader)
        + attention * attention_parameters(reader, head_dim)
        + (count - attention) * mamba2_parameters(hidden, state)
        + count * mlp,
        head_dim=head_dim,
        chunk_size=reader.size("mamba_chunk_size", 256),
        mlp_widths=(reader.size("intermediate_size"),),
    )


FAMILY = Family(model_types=("bamba",), architectures=("BambaForCausalLM",), read=read)
