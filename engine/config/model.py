"""What a Hugging Face `config.json` says about a model's layers, states and sizes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

MixerKind = Literal["attention", "mamba1", "mamba2", "gated_delta_net"]
MlpKind = Literal["dense", "moe", "none"]


@dataclass(frozen=True, slots=True)
class LayerInfo:
    """One decoder layer: what mixes tokens, and what follows it."""

    mixer: MixerKind
    mlp: MlpKind


@dataclass(frozen=True, slots=True)
class StateShape:
    """One recurrent state tensor of one layer of one rank: `role` decides which dtype option applies."""

    role: Literal["conv", "ssm"]
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """A model as configuration sees it; made by `from_hf_config`.

    Attributes:
        name: What the user called it.
        architecture: First entry of `architectures`.
        model_type: Hugging Face `model_type`.
        layers: Every decoder layer in order.
        hidden_size: Width of the residual stream.
        num_attention_heads: Query heads.
        num_kv_heads: Key/value heads before tensor parallelism.
        head_dim: Elements of one head.
        vocab_size: Tokens in the vocabulary.
        max_position_embeddings: Longest context the checkpoint declares.
        num_experts: Experts of an MoE layer, 0 without.
        num_experts_per_tok: Experts chosen per token, 0 without.
        dtype: dtype declared by the checkpoint.
        ssm_dtype: State dtype declared by the checkpoint (`mamba_ssm_dtype`), None where it declares none.
        state_shapes: (tensor_parallel_size, num_speculative_tokens) -> the state tensors of one recurrent layer;
            None without recurrent layers.
        hf: The raw mapping, for the model's own constructor.
    """

    name: str
    architecture: str
    model_type: str
    layers: tuple[LayerInfo, ...]
    hidden_size: int
    num_attention_heads: int
    num_kv_heads: int
    head_dim: int
    vocab_size: int
    max_position_embeddings: int
    num_experts: int
    num_experts_per_tok: int
    dtype: str
    ssm_dtype: str | None
    state_shapes: Callable[[int, int], tuple[StateShape, ...]] | None
    hf: Mapping[str, Any]

    @property
    def attention_layers(self) -> tuple[int, ...]:
        """Indices of the layers that keep keys and values."""
        return tuple(i for i, layer in enumerate(self.layers) if layer.mixer == "attention")

    @property
    def recurrent_layers(self) -> tuple[int, ...]:
        """Indices of the layers that keep a recurrent state."""
        return tuple(i for i, layer in enumerate(self.layers) if layer.mixer != "attention")

    @property
    def is_hybrid(self) -> bool:
        """Whether both kinds of layer are present."""
        return bool(self.attention_layers) and bool(self.recurrent_layers)
