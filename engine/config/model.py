"""What a Hugging Face `config.json` says about a model's layers, states and sizes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from staticfire.engine.config.quantized import CheckpointQuantization

LARGEST: Final = 2**63 - 1
"""The largest number that may be typed or declared: what an index of a tensor can hold."""

MixerKind = Literal["attention", "mamba1", "mamba2", "gated_delta_net", "attention+mamba2", "none"]
"""What mixes tokens. `attention+mamba2` runs both side by side (Falcon-H1); `none` is an MLP on its own."""
RecurrentKind = Literal["mamba1", "mamba2", "gated_delta_net"]
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
    """A model as configuration sees it; made by `reader.model_info`.

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
        parameters: Weights outside the routed experts, counted from the shapes.
        expert_parameters: Weights of all routed experts.
        ssm_dtype_because: Who asks for `ssm_dtype`.
        chunk_size: Tokens of one chunk of the family's scan kernel, None without recurrent layers.
        mlp_widths: Inner widths of the MLPs outside the routed experts.
        expert_width: Inner width of a routed expert, 0 without.
        quantization: Quantization that the checkpoint already has, None without.
        attention_layers: Indices of the layers that keep keys and values.
        recurrent_layers: Indices of the layers that keep a recurrent state.
        is_hybrid: Whether both kinds of layer are present.
        recurrent_kind: What keeps the recurrent state, None without.
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
    parameters: int = 0
    expert_parameters: int = 0
    ssm_dtype_because: str | None = None
    chunk_size: int | None = None
    mlp_widths: tuple[int, ...] = ()
    expert_width: int = 0
    quantization: CheckpointQuantization | None = None
    attention_layers: tuple[int, ...] = field(init=False)
    recurrent_layers: tuple[int, ...] = field(init=False)
    is_hybrid: bool = field(init=False)
    recurrent_kind: RecurrentKind | None = field(init=False)

    @property
    def quant_method(self) -> str | None:
        """The method of that quantization."""
        return self.quantization.method if self.quantization else None

    def __post_init__(self) -> None:
        """Sort the layers once: resolution asks thousands of times."""
        attention = tuple(i for i, layer in enumerate(self.layers) if "attention" in layer.mixer)
        recurrent = tuple(i for i, layer in enumerate(self.layers) if layer.mixer not in {"attention", "none"})
        kind = self.layers[recurrent[0]].mixer.removeprefix("attention+") if recurrent else None
        object.__setattr__(self, "attention_layers", attention)
        object.__setattr__(self, "recurrent_layers", recurrent)
        object.__setattr__(self, "is_hybrid", bool(attention) and bool(recurrent))
        object.__setattr__(self, "recurrent_kind", kind)
