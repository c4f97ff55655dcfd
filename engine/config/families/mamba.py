"""Mamba: Mamba-1 layers only, no attention and no MLP."""

from staticfire.engine.config.families.base import Family, Parts, Reader, embedding_parameters
from staticfire.engine.config.families.jamba import MAMBA1_CHUNK, mamba1_parameters
from staticfire.engine.config.families.states import Mamba1State
from staticfire.engine.config.model import LayerInfo


def read(reader: Reader) -> Parts:
    """Read a Mamba `config.json`."""
    count, hidden = reader.num_layers(), reader.size("hidden_size")
    state = Mamba1State(
        reader.size("intermediate_size", reader.size("expand", 2) * hidden),
        reader.size("state_size", 16),
        reader.size("conv_kernel", 4),
    )
    rank = reader.hf.get("time_step_rank", "auto")
    dt_rank = -(-hidden // 16) if rank is None or rank == "auto" else reader.size("time_step_rank")
    return Parts(
        layers=(LayerInfo("mamba1", "none"),) * count,
        states=state,
        parameters=embedding_parameters(reader) + count * mamba1_parameters(hidden, state, dt_rank),
        chunk_size=MAMBA1_CHUNK,
    )


FAMILY = Family(
    model_types=("mamba", "falcon_mamba"), architectures=("MambaForCausalLM", "FalconMambaForCausalLM"), read=read
)
