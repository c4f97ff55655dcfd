"""Falcon-H1: attention and Mamba-2 side by side in every layer."""

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
    """Read a Falcon-H1 `config.json`."""
    count, hidden = reader.num_layers(), reader.size("hidden_size")
    state, head_dim = mamba2_state(reader), reader.head_dim()
    mlp = 3 * hidden * reader.size("intermediate_size")
    return Parts(
        layers=(LayerInfo("attention+mamba2", "dense"),) * count,
        states=state,
        parameters=embedding_parameters(reader)
        + count * (attention_parameters(reader, head_dim) + mamba2_parameters(hidden, state) + mlp),
        head_dim=head_dim,
        chunk_size=reader.size("mamba_chunk_size", 256),
        mlp_widths=(reader.size("intermediate_size"),),
    )


FAMILY = Family(model_types=("falcon_h1",), architectures=("FalconH1ForCausalLM",), read=read)
