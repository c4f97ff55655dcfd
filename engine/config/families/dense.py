"""Dense transformers: Llama and Qwen3, the controls without recurrent layers."""

from staticfire.engine.config.families.base import (
    Family,
    Parts,
    Reader,
    attention_parameters,
    embedding_parameters,
)
from staticfire.engine.config.model import LayerInfo

FULL = ("full_attention",)
"""Kinds that `layer_types` may hold: a sliding window would need another cache."""


def read(reader: Reader) -> Parts:
    """Read a Llama-like `config.json`."""
    count, head_dim = reader.num_layers(), reader.head_dim()
    listed = reader.layer_types(count, FULL) if reader.hf.get("layer_types") is not None else None
    if listed is None and reader.hf.get("use_sliding_window"):
        reader.fault("use_sliding_window", "config.json: use_sliding_window=true; only full attention is known", True)
    mlp = 3 * reader.size("hidden_size") * reader.size("intermediate_size")
    return Parts(
        layers=(LayerInfo("attention", "dense"),) * count,
        states=None,
        parameters=embedding_parameters(reader) + count * (attention_parameters(reader, head_dim) + mlp),
        head_dim=head_dim,
        mlp_widths=(reader.size("intermediate_size"),),
    )


FAMILY = Family(model_types=("llama", "qwen3"), architectures=("LlamaForCausalLM", "Qwen3ForCausalLM"), read=read)
